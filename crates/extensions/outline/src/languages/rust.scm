(mod_item name: (identifier) @name) @module
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @union
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait

(impl_item trait: (_) @of type: (_) @name) @impl
(impl_item !trait type: (_) @name) @impl

(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @prototype
(const_item name: (identifier) @name) @constant
(static_item (mutable_specifier) name: (identifier) @name) @variable
(static_item name: (identifier) @name) @constant
(macro_definition name: (identifier) @name) @macro
