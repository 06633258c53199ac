(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @module

(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(function_signature name: (identifier) @name) @prototype
(method_definition name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(class_body (method_signature name: (_) @name) @method)
(interface_body (method_signature name: (_) @name) @method)
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @method

; Values that are functions or classes go by the name they are given.
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator value: [
  (object (pair
    key: (property_identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) @method)
  (satisfies_expression (object (pair
    key: (property_identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) @method))
  (as_expression (object (pair
    key: (property_identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) @method))
])
(assignment_expression
  left: (member_expression) @name
  right: [(arrow_function) (function_expression) (generator_function)]) @function

; What a module gives without a name.
(export_statement "default" @name value: (class)) @class
(export_statement "default" @name value: [(arrow_function) (function_expression)]) @function

; Other values only where the whole module sees them.
(program (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant))
(program (lexical_declaration kind: "let" (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement declaration:
  (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant)))
(program (export_statement declaration:
  (lexical_declaration kind: "let" (variable_declarator name: (identifier) @name) @variable)))
(program (ambient_declaration
  (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
