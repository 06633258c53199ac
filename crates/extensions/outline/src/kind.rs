//! What a definition is, in words any programmer knows.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// What a definition is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DefinitionKind {
            $($(#[$doc])* $kind,)*
        }

        impl DefinitionKind {
            /// The word for it, which is also the name of its captures in the queries.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)*
                }
            }

            /// The kind with this word.
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
    /// A module of code.
    Module = "module",
    /// A namespace or a package.
    Namespace = "namespace",
    /// A class.
    Class = "class",
    /// A structure.
    Struct = "struct",
    /// A union.
    Union = "union",
    /// An enumeration.
    Enum = "enum",
    /// A record: a class that is mostly its fields.
    Record = "record",
    /// An interface or a protocol.
    Interface = "interface",
    /// A trait, or a concept of C++.
    Trait = "trait",
    /// The methods of a type, apart from it.
    Impl = "impl",
    /// Another name for a type.
    Type = "type",
    /// A function.
    Function = "function",
    /// A function that belongs to a type.
    Method = "method",
    /// A function whose body is elsewhere.
    Prototype = "prototype",
    /// A property or event of a type that runs code.
    Property = "property",
    /// A value that does not change.
    Constant = "constant",
    /// A value of the whole module.
    Variable = "variable",
    /// A macro.
    Macro = "macro",
}

impl DefinitionKind {
    /// Whether functions in it are methods.
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

    /// What a definition of this kind is directly inside another.
    pub(crate) fn inside(self, outer: Option<Self>) -> Self {
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
