(namespace_declaration name: (_) @name) @namespace
(file_scoped_namespace_declaration name: (_) @name) @namespace
(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(record_declaration name: (identifier) @name) @record
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(delegate_declaration name: (identifier) @name) @type

(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
((destructor_declaration name: (identifier) @name) @method (#set! prefix "~"))
((operator_declaration operator: _ @name) @method (#set! prefix "operator "))
((conversion_operator_declaration type: (_) @name) @method (#set! prefix "operator "))
(local_function_statement name: (identifier) @name) @function
(property_declaration name: (identifier) @name) @property
(indexer_declaration "this" @name) @property
(event_declaration name: (identifier) @name) @property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @property

(field_declaration
  (modifier "const")
  (variable_declaration (variable_declarator name: (identifier) @name))) @constant
