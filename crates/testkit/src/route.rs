//! Finds the API of a request from its method, path and headers.

use haft_types::Api;
use hyper::{HeaderMap, Method};

/// The purpose of a request, as determined by its method and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The request asks for a model reply. In Gemini's API, the path contains the model and the
    /// streaming flag; in the other APIs, the body does.
    Generate {
        api: Api,
        from_path: Option<PathModel>,
    },
    /// The request asks for a token count.
    CountTokens { api: Api },
    /// The request asks for a list of models.
    Models { api: Api },
    /// The request has a path that isn't served; `api` determines the form of the error.
    Unknown { api: Api },
}

/// The properties that Gemini puts in the path of a request and other APIs put in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathModel {
    pub(crate) model: String,
    pub(crate) stream: bool,
}

/// Guesses the API from client headers. OpenAI clients send no header of their own, so they are the
/// default.
pub(crate) fn detect_client_api(headers: &HeaderMap) -> Api {
    if headers.contains_key("anthropic-version") {
        Api::Anthropic
    } else if headers.contains_key("x-goog-api-key") {
        Api::Gemini
    } else {
        Api::OpenaiChat
    }
}

/// Finds the route of a path. If several APIs share the path, the route belongs to the API
/// `client`.
pub(crate) fn find_route(method: &Method, path: &str, client: Api) -> Route {
    let mut segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    // Clients differ in whether the base URL contains the version, so it is optional here. A
    // doubled version is an error.
    let version = match segments.first() {
        Some(&version @ ("v1" | "v1beta" | "v1alpha")) => {
            segments.remove(0);
            version
        }
        _ => "",
    };
    let likely = match version {
        "v1beta" | "v1alpha" => Api::Gemini,
        _ => client,
    };
    let post = *method == Method::POST;
    match segments.as_slice() {
        ["chat", "completions"] if post => Route::Generate {
            api: Api::OpenaiChat,
            from_path: None,
        },
        ["responses"] if post => Route::Generate {
            api: Api::OpenaiResponses,
            from_path: None,
        },
        ["messages"] if post => Route::Generate {
            api: Api::Anthropic,
            from_path: None,
        },
        ["messages", "count_tokens"] if post => Route::CountTokens {
            api: Api::Anthropic,
        },
        ["models", action] if post => match action.rsplit_once(':') {
            Some((model, "generateContent")) => gemini_route(model, false),
            Some((model, "streamGenerateContent")) => gemini_route(model, true),
            Some((_, "countTokens")) => Route::CountTokens { api: Api::Gemini },
            _ => Route::Unknown { api: Api::Gemini },
        },
        ["models"] if *method == Method::GET => Route::Models { api: likely },
        _ => Route::Unknown { api: likely },
    }
}

fn gemini_route(model: &str, stream: bool) -> Route {
    Route::Generate {
        api: Api::Gemini,
        from_path: Some(PathModel {
            model: model.to_owned(),
            stream,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_may_be_left_out_but_not_doubled() {
        let chat = Route::Generate {
            api: Api::OpenaiChat,
            from_path: None,
        };
        assert_eq!(
            find_route(&Method::POST, "/v1/chat/completions", Api::OpenaiChat),
            chat
        );
        assert_eq!(
            find_route(&Method::POST, "/chat/completions", Api::OpenaiChat),
            chat
        );
        assert_eq!(
            find_route(&Method::POST, "/v1/v1/chat/completions", Api::OpenaiChat),
            Route::Unknown {
                api: Api::OpenaiChat
            }
        );
        assert_eq!(
            find_route(&Method::GET, "/v1/chat/completions", Api::OpenaiChat),
            Route::Unknown {
                api: Api::OpenaiChat
            }
        );
    }

    #[test]
    fn gemini_names_model_and_streaming_in_the_path() {
        let path = "/v1beta/models/gemini-3-pro:streamGenerateContent";
        assert_eq!(
            find_route(&Method::POST, path, Api::OpenaiChat),
            gemini_route("gemini-3-pro", true)
        );
        assert_eq!(
            find_route(&Method::POST, "/models/m:generateContent", Api::OpenaiChat),
            gemini_route("m", false)
        );
        assert_eq!(
            find_route(
                &Method::POST,
                "/v1beta/models/m:countTokens",
                Api::OpenaiChat
            ),
            Route::CountTokens { api: Api::Gemini }
        );
    }

    #[test]
    fn model_listings_are_told_apart_by_version_and_header() {
        assert_eq!(
            find_route(&Method::GET, "/v1/models", Api::OpenaiChat),
            Route::Models {
                api: Api::OpenaiChat
            }
        );
        assert_eq!(
            find_route(&Method::GET, "/v1/models", Api::Anthropic),
            Route::Models {
                api: Api::Anthropic
            }
        );
        assert_eq!(
            find_route(&Method::GET, "/v1/models", Api::Gemini),
            Route::Models { api: Api::Gemini }
        );
        assert_eq!(
            find_route(&Method::GET, "/v1beta/models", Api::OpenaiChat),
            Route::Models { api: Api::Gemini }
        );
    }
}
