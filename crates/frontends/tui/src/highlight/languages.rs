//! The languages models write most: their words and delimiters. A language is one value in [`ALL`].

/// What is known of a language.
#[derive(Debug)]
pub(super) struct LanguageSyntax {
    /// Names, endings of files and whole names of files, in small characters.
    pub(super) names: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) comments: Option<(&'static str, &'static str)>,
    pub(super) quotes: &'static [StringSyntax],
    /// One after another, with a space between; so are the constants and `defines`.
    pub(super) keywords: &'static str,
    pub(super) constants: &'static str,
    /// Words after which a name is given.
    pub(super) defines: &'static str,
    /// What stands between a name and its value.
    pub(super) key: Option<&'static str>,
    /// Signs that words may hold beside characters.
    pub(super) in_words: &'static str,
    /// Signs that begin the name of a variable.
    pub(super) before_words: &'static str,
    /// Whether words that begin with a capital are types.
    pub(super) types: bool,
    /// Whether words mean the same in capitals.
    pub(super) any_case: bool,
    /// Whether a word behind `<` is a tag.
    pub(super) tags: bool,
    /// Whether the sign of a comment may stand within a word.
    pub(super) words_hold_comments: bool,
    /// Whether the first character of a line says what the line is, as in a diff.
    pub(super) whole_lines: bool,
}

/// A way to write a string.
#[derive(Debug)]
pub(super) struct StringSyntax {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) escapes: bool,
    pub(super) many_lines: bool,
    /// Whether it holds one character: otherwise the sign means something else.
    one_letter: bool,
}

impl StringSyntax {
    /// A string that ends with its line.
    const fn short(mark: &'static str) -> Self {
        Self { open: mark, close: mark, escapes: true, many_lines: false, one_letter: false }
    }

    /// A string that may go on in the next line.
    const fn long(mark: &'static str) -> Self {
        Self { many_lines: true, ..Self::short(mark) }
    }

    /// A string in which everything means itself.
    const fn raw(open: &'static str, close: &'static str) -> Self {
        Self { open, close, escapes: false, many_lines: true, one_letter: false }
    }

    const fn c(mark: &'static str) -> Self {
        Self { one_letter: true, ..Self::short(mark) }
    }

    /// Whether a string begins here.
    pub(super) fn opens(&self, text: &str) -> bool {
        let Some(behind) = text.strip_prefix(self.open) else { return false };
        if !self.one_letter {
            return true;
        }
        let mut chars = behind.chars();
        match chars.next() {
            Some('\\') => true,
            Some(_) => chars.as_str().starts_with(self.close),
            None => false,
        }
    }
}

const NONE: LanguageSyntax = LanguageSyntax {
    names: &[],
    line_comments: &[],
    comments: None,
    quotes: &[],
    keywords: "",
    constants: "",
    defines: "",
    key: None,
    in_words: "",
    before_words: "",
    types: false,
    any_case: false,
    tags: false,
    words_hold_comments: false,
    whole_lines: false,
};

/// Braces, `//` and `/* */`.
const LIKE_C: LanguageSyntax = LanguageSyntax {
    line_comments: &["//"],
    comments: Some(("/*", "*/")),
    quotes: &[StringSyntax::short("\""), StringSyntax::short("'")],
    constants: "true false null NULL nullptr this self super nil",
    types: true,
    ..NONE
};

/// Comments begin with `#`.
const LIKE_SHELL: LanguageSyntax = LanguageSyntax {
    line_comments: &["#"],
    quotes: &[StringSyntax::long("\""), StringSyntax::raw("'", "'")],
    words_hold_comments: true,
    ..NONE
};

const C_WORDS: &str = "auto bool break case catch char class concept const constexpr continue default delete do double else enum \
    explicit extern final float for friend goto if inline int long mutable namespace new noexcept operator \
    override private protected public register requires return short signed sizeof static struct switch template \
    throw try typedef typename union unsigned using virtual void volatile while #include #define #if #ifdef \
    #ifndef #else #endif #pragma";

const SCRIPT_WORDS: &str = "abstract any as async await boolean break case catch class const continue debugger declare default delete do \
    else enum export extends finally for from function get if implements import in instanceof interface keyof \
    let namespace never new number of private protected public readonly return satisfies set static string \
    switch throw try type typeof unknown var void while with yield";

/// Every language that is known.
pub(super) static ALL: &[LanguageSyntax] = &[
    LanguageSyntax {
        names: &["rust", "rs"],
        quotes: &[
            StringSyntax::raw("r#\"", "\"#"),
            StringSyntax::raw("r\"", "\""),
            StringSyntax::long("\""),
            StringSyntax::c("'"),
        ],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod \
            move mut pub ref return static struct trait type union unsafe use where while",
        constants: "true false self super",
        defines: "fn",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &["python", "py", "pyi", "python3"],
        line_comments: &["#"],
        quotes: &[
            StringSyntax::long("\"\"\""),
            StringSyntax::long("'''"),
            StringSyntax::short("\""),
            StringSyntax::short("'"),
        ],
        keywords: "and as assert async await break case class continue def del elif else except finally for from global \
            if import in is lambda match nonlocal not or pass raise return try while with yield",
        constants: "self cls",
        defines: "def",
        before_words: "@",
        types: true,
        ..NONE
    },
    LanguageSyntax {
        names: &["javascript", "js", "mjs", "cjs", "jsx", "typescript", "ts", "tsx", "mts"],
        quotes: &[StringSyntax::long("`"), StringSyntax::short("\""), StringSyntax::short("'")],
        keywords: SCRIPT_WORDS,
        constants: "true false null undefined this super",
        defines: "function",
        in_words: "$",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &["go", "golang"],
        quotes: &[StringSyntax::raw("`", "`"), StringSyntax::short("\""), StringSyntax::short("'")],
        keywords: "bool break byte case chan const continue default defer else error fallthrough float64 for func go \
            goto if import int int64 interface map package range return rune select string struct switch type \
            uint64 var",
        constants: "true false nil iota",
        defines: "func",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &["c", "h", "c++", "cpp", "cc", "cxx", "hpp", "hh", "cu"],
        keywords: C_WORDS,
        before_words: "#",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &[
            "java", "kotlin", "kt", "kts", "scala", "groovy", "gradle", "c#", "csharp", "cs", "swift", "dart", "zig",
        ],
        quotes: &[StringSyntax::long("\"\"\""), StringSyntax::short("\""), StringSyntax::short("'")],
        keywords: "abstract as async await base bool boolean break byte case catch char class companion const continue \
            data def default defer do double else enum extends extension final finally float fn for foreach fun \
            func get guard if implements import in init int interface internal is let long namespace new object \
            open override package private protected protocol public readonly record return sealed set short \
            static string struct suspend switch throw throws trait try typealias using val var void when where \
            while with yield",
        defines: "fun func def fn",
        before_words: "@",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &["ruby", "rb", "gemfile", "rakefile", "elixir", "ex", "exs"],
        keywords: "alias and begin break case class cond def defmodule defp do else elsif end ensure fn for if import \
            in module next not or raise redo require rescue return then undef unless until use when while with \
            yield",
        constants: "true false nil self super",
        defines: "def defp",
        before_words: "@:",
        in_words: "?!",
        types: true,
        quotes: &[StringSyntax::long("\""), StringSyntax::long("'")],
        ..LIKE_SHELL
    },
    LanguageSyntax {
        names: &["php"],
        line_comments: &["//", "#"],
        keywords: "abstract array as break case catch class const continue default do echo else elseif extends final \
            finally fn for foreach function if implements instanceof interface match namespace new private \
            protected public readonly require require_once return static switch throw trait try use while yield",
        defines: "function",
        before_words: "$",
        ..LIKE_C
    },
    LanguageSyntax {
        names: &[
            "bash", "sh", "shell", "zsh", "fish", "console", ".bashrc", ".zshrc", "dockerfile", "docker", "makefile",
            "make", "mk",
        ],
        keywords: "alias break case cd continue do done echo elif else esac eval exec exit export fi for function if in \
            local return set shift source sudo then trap unset until while FROM RUN COPY ADD CMD ENV ARG WORKDIR \
            ENTRYPOINT EXPOSE USER VOLUME ifeq ifdef ifndef endif include",
        defines: "function",
        in_words: "-",
        before_words: "$",
        ..LIKE_SHELL
    },
    LanguageSyntax {
        names: &["json", "jsonc", "json5", "jsonl"],
        line_comments: &["//"],
        comments: Some(("/*", "*/")),
        quotes: &[StringSyntax::short("\"")],
        constants: "true false null",
        key: Some(":"),
        ..NONE
    },
    LanguageSyntax {
        names: &["yaml", "yml"],
        constants: "true false null yes no",
        quotes: &[StringSyntax::short("\""), StringSyntax::short("'")],
        key: Some(":"),
        in_words: "-.",
        ..LIKE_SHELL
    },
    LanguageSyntax {
        names: &["toml", "ini", "cfg", "conf", "env", "properties", ".env", "editorconfig"],
        line_comments: &["#", ";"],
        quotes: &[
            StringSyntax::long("\"\"\""),
            StringSyntax::raw("'''", "'''"),
            StringSyntax::short("\""),
            StringSyntax::short("'"),
        ],
        constants: "true false",
        key: Some("="),
        in_words: "-.",
        ..LIKE_SHELL
    },
    LanguageSyntax {
        names: &["sql", "postgresql", "mysql", "sqlite"],
        line_comments: &["--"],
        comments: Some(("/*", "*/")),
        quotes: &[StringSyntax::raw("'", "'"), StringSyntax::raw("\"", "\"")],
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross default \
            delete desc distinct drop else end exists foreign from group having if in index inner insert into is \
            join key left like limit not offset on or order outer primary references returning right rollback \
            select set table then transaction trigger union unique update using values view when where with",
        constants: "null true false",
        any_case: true,
        ..NONE
    },
    LanguageSyntax {
        names: &["html", "htm", "xml", "svg", "vue", "svelte", "xhtml"],
        comments: Some(("<!--", "-->")),
        quotes: &[StringSyntax::raw("\"", "\"")],
        in_words: "-",
        tags: true,
        ..NONE
    },
    LanguageSyntax {
        names: &["css", "scss", "less"],
        comments: Some(("/*", "*/")),
        quotes: &[StringSyntax::short("\""), StringSyntax::short("'")],
        key: Some(":"),
        in_words: "-",
        before_words: "@$#.",
        ..NONE
    },
    LanguageSyntax {
        names: &["lua"],
        line_comments: &["--"],
        quotes: &[StringSyntax::raw("[[", "]]"), StringSyntax::short("\""), StringSyntax::short("'")],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        constants: "true false nil",
        defines: "function",
        ..NONE
    },
    LanguageSyntax {
        names: &["haskell", "hs", "elm", "ocaml", "ml", "nix"],
        line_comments: &["--"],
        comments: Some(("{-", "-}")),
        quotes: &[StringSyntax::long("\""), StringSyntax::c("'")],
        keywords: "and as case class data deriving do else end fun function if import in inherit instance let match \
            module newtype of open rec then type val where with",
        types: true,
        in_words: "'",
        ..NONE
    },
    LanguageSyntax { names: &["diff", "patch"], whole_lines: true, ..NONE },
];

/// The language of that name.
pub(super) fn named(name: &str) -> Option<&'static LanguageSyntax> {
    ALL.iter().find(|language| language.names.contains(&name))
}
