//! What keys of known issuers look like: a beginning nobody else uses, then so many characters of one alphabet.
//!
//! Each shape is that of its issuer's documentation or of the secret scanners that know it. A shape too wide would blind
//! the model to ordinary code, so a beginning that is also a word asks for more characters and a digit among them.

/// The characters of a key after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAlphabet {
    /// `A-Z a-z 0-9`
    Alphanumeric,
    /// The same with `_` and `-`.
    Url,
    /// The same with `.` too.
    Dotted,
    /// `A-Z a-z 0-9 + / =` and the characters of the URL form.
    Base64,
    /// `A-Z 0-9`
    Upper,
    /// `0-9 a-f`
    Hex,
}

impl KeyAlphabet {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
        }
    }
}

/// A kind of key.
pub(super) struct Shape {
    /// What it is called where it stood.
    pub(super) name: &'static str,
    /// How it begins.
    pub(super) start: &'static str,
    /// What follows.
    pub(super) alphabet: KeyAlphabet,
    /// How much at least.
    pub(super) min: usize,
}

const fn shape(name: &'static str, start: &'static str, alphabet: KeyAlphabet, min: usize) -> Shape {
    Shape { name, start, alphabet, min }
}

use KeyAlphabet::{Alphanumeric, Base64, Dotted, Hex, Upper, Url};

pub(super) static SHAPES: &[Shape] = &[
    // Models
    shape("Anthropic key", "sk-ant-", Url, 20),
    shape("OpenAI key", "sk-proj-", Url, 20),
    shape("OpenAI key", "sk-svcacct-", Url, 20),
    shape("OpenAI key", "sk-admin-", Url, 20),
    shape("OpenRouter key", "sk-or-v1-", Hex, 32),
    shape("API key", "sk-", Alphanumeric, 32),
    shape("Google API key", "AIza", Url, 35),
    shape("Groq key", "gsk_", Alphanumeric, 40),
    shape("xAI key", "xai-", Alphanumeric, 60),
    shape("Replicate token", "r8_", Alphanumeric, 36),
    shape("Hugging Face token", "hf_", Alphanumeric, 30),
    shape("Perplexity key", "pplx-", Alphanumeric, 40),
    shape("Tavily key", "tvly-", Url, 20),
    shape("LangSmith key", "lsv2_", Url, 30),
    // Code
    shape("GitHub token", "ghp_", Alphanumeric, 36),
    shape("GitHub token", "gho_", Alphanumeric, 36),
    shape("GitHub token", "ghu_", Alphanumeric, 36),
    shape("GitHub token", "ghs_", Alphanumeric, 36),
    shape("GitHub token", "ghr_", Alphanumeric, 36),
    shape("GitHub token", "github_pat_", Url, 60),
    shape("GitLab token", "glpat-", Url, 20),
    shape("GitLab token", "gldt-", Url, 20),
    shape("GitLab token", "glrt-", Url, 20),
    shape("GitLab token", "glptt-", Url, 20),
    shape("Bitbucket token", "ATBB", Alphanumeric, 28),
    shape("Atlassian token", "ATATT3", Base64, 100),
    shape("npm token", "npm_", Alphanumeric, 36),
    shape("PyPI token", "pypi-", Url, 60),
    shape("crates.io token", "cio", Alphanumeric, 32),
    shape("RubyGems key", "rubygems_", Hex, 48),
    shape("Docker token", "dckr_pat_", Url, 24),
    shape("Linear key", "lin_api_", Alphanumeric, 40),
    shape("Sentry token", "sntrys_", Base64, 40),
    shape("Sentry token", "sntryu_", Hex, 60),
    shape("Grafana token", "glsa_", Url, 32),
    shape("Grafana key", "glc_", Base64, 32),
    shape("Postman key", "PMAK-", Url, 50),
    shape("Figma token", "figd_", Url, 30),
    shape("Notion token", "ntn_", Alphanumeric, 40),
    shape("Airtable token", "pat.", Dotted, 60),
    // Clouds
    shape("AWS key id", "AKIA", Upper, 16),
    shape("AWS key id", "ASIA", Upper, 16),
    shape("AWS key id", "ABIA", Upper, 16),
    shape("Google OAuth token", "ya29.", Url, 30),
    shape("Google OAuth secret", "GOCSPX-", Url, 28),
    shape("DigitalOcean token", "dop_v1_", Hex, 64),
    shape("DigitalOcean token", "doo_v1_", Hex, 64),
    shape("Databricks token", "dapi", Hex, 32),
    shape("Doppler token", "dp.pt.", Alphanumeric, 40),
    shape("Doppler token", "dp.st.", Dotted, 40),
    shape("HashiCorp token", "hvs.", Url, 24),
    shape("HashiCorp token", "hvb.", Url, 24),
    shape("Terraform token", "atlasv1.", Url, 60),
    shape("PlanetScale token", "pscale_tkn_", Url, 32),
    shape("PlanetScale password", "pscale_pw_", Url, 32),
    shape("Supabase key", "sbp_", Hex, 40),
    shape("Supabase key", "sb_secret_", Url, 20),
    shape("Fly token", "FlyV1 fm2_", Base64, 40),
    shape("Vercel token", "vercel_", Alphanumeric, 24),
    shape("Netlify token", "nfp_", Alphanumeric, 36),
    shape("Pulumi token", "pul-", Hex, 40),
    shape("New Relic key", "NRAK-", Upper, 27),
    shape("Dynatrace token", "dt0c01.", Dotted, 60),
    // Money, messages
    shape("Stripe key", "sk_live_", Alphanumeric, 24),
    shape("Stripe key", "sk_test_", Alphanumeric, 24),
    shape("Stripe key", "rk_live_", Alphanumeric, 24),
    shape("Stripe secret", "whsec_", Base64, 32),
    shape("Square token", "sq0atp-", Url, 22),
    shape("Square secret", "sq0csp-", Url, 43),
    shape("Shopify token", "shpat_", Hex, 32),
    shape("Shopify secret", "shpss_", Hex, 32),
    shape("PayPal token", "access_token$production$", Url, 32),
    shape("Slack token", "xoxb-", Url, 24),
    shape("Slack token", "xoxp-", Url, 24),
    shape("Slack token", "xoxa-", Url, 24),
    shape("Slack token", "xoxs-", Url, 24),
    shape("Slack token", "xoxe-", Url, 24),
    shape("Slack token", "xapp-", Url, 24),
    shape("Slack webhook", "hooks.slack.com/services/", Base64, 40),
    shape("Discord webhook", "discord.com/api/webhooks/", Base64, 60),
    shape("SendGrid key", "SG.", Dotted, 60),
    shape("Mailgun key", "key-", Hex, 32),
    shape("Twilio key", "SK", Hex, 32),
    shape("Brevo key", "xkeysib-", Url, 64),
    shape("Resend key", "re_", Url, 32),
    shape("age key", "AGE-SECRET-KEY-1", Upper, 50),
];
