//! Defines the kinds of definitions.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// The kind of a definition, independent of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DefinitionKind {
            $($(#[$doc])* $kind,)*
        }

        impl DefinitionKind {
            /// Returns the English word for the kind, such as `class`. Queries use it as the name
            /// of a capture.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)*
                }
            }

            /// Returns the kind for which [`Self::word`] returns `word`, or `None` if there is no
            /// such kind.
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Module = "module",
    /// A namespace or a package.
    Namespace = "namespace",
    Class = "class",
    Struct = "struct",
    Union = "union",
    Enum = "enum",
    /// A record: a class that mainly consists of its fields.
    Record = "record",
    /// An interface or a protocol.
    Interface = "interface",
    /// A trait, or a concept of C++.
    Trait = "trait",
    /// A block that defines methods of a type, outside of the definition of the type.
    Impl = "impl",
    /// A type alias.
    Type = "type",
    Function = "function",
    /// A function that belongs to a type.
    Method = "method",
    /// A function that is declared without a body.
    Prototype = "prototype",
    /// A property or event of a type that runs code.
    Property = "property",
    /// A value that cannot be reassigned.
    Constant = "constant",
    /// A module-level variable.
    Variable = "variable",
    Macro = "macro",
}

impl DefinitionKind {
    /// True if a function directly inside a definition of this kind is a method.
    pub(crate) fn has_methods(self) -> bool {
        match self {
            Self::Class
            | Self::Struct
            | Self::Union
            | Self::Enum
            | Self::Record
            | Self::Interface
            | Self::Trait
            | Self::Impl => true,
            Self::Module
            | Self::Namespace
            | Self::Type
            | Self::Function
            | Self::Method
            | Self::Prototype
            | Self::Property
            | Self::Constant
            | Self::Variable
            | Self::Macro => false,
        }
    }

    /// Adjusts the kind of a definition that is directly inside `outer`: a function in a type
    /// becomes a method.
    pub(crate) fn adjust_to_outer(self, outer: Option<Self>) -> Self {
        match self {
            Self::Function | Self::Prototype if outer.is_some_and(Self::has_methods) => {
                Self::Method
            }
            other => other,
        }
    }
}

impl fmt::Display for DefinitionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}
