(function_declaration name: (identifier) @name) @function

; A method goes by the type it is of, whether it takes a pointer to it or type parameters.
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @receiver
    (pointer_type (type_identifier) @receiver)
    (generic_type type: (type_identifier) @receiver)
    (pointer_type (generic_type type: (type_identifier) @receiver))
  ]))
  name: (field_identifier) @name) @method

(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(method_elem name: (field_identifier) @name) @method

((source_file (const_declaration (const_spec (identifier) @name) @constant)) (#not-eq? @name "_"))
((source_file (var_declaration (var_spec name: (identifier) @name) @variable)) (#not-eq? @name "_"))
((source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable))) (#not-eq? @name "_"))
