(module name: (_) @name) @module
(class name: (_) @name) @class
((singleton_class value: (_) @name) @class (#set! prefix "<< "))
(method name: (_) @name) @method
(singleton_method object: (_) @receiver name: (_) @name) @method
(assignment left: (constant) @name) @constant
