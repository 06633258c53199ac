(class_declaration name: (identifier) @name) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @method

; Values that are functions or classes go by the name they are given.
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator
  value: (object (pair
    key: (property_identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) @method))
(assignment_expression
  left: (member_expression) @name
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: (member_expression) @name right: (class)) @class

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
