; With its decorators, where it has some.
(decorated_definition definition: (class_definition name: (identifier) @name)) @class
(decorated_definition definition: (function_definition name: (identifier) @name)) @function
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function

(type_alias_statement left: (type (identifier) @name)) @type
(type_alias_statement left: (type (generic_type (identifier) @name))) @type

((module (expression_statement (assignment left: [
    (identifier) @name
    (pattern_list (identifier) @name)
  ]) @constant))
  (#match? @name "^_?[A-Z][A-Z0-9_]*$"))
(module (expression_statement (assignment left: (identifier) @name right: (lambda)) @function))
