//! Runs OAuth logins and stores their tokens in private files.
//!
//! Invariant: a token is stored for the URL that it was issued for, in a file that only its owner
//! can read, and never becomes part of an error message.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use haft_files::{Durability, LockFile};
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest,
    AuthorizationSession, CredentialRefreshGuard, CredentialStore, StoredCredentials,
    WWWAuthenticateParams,
};

use crate::error::McpError;
use crate::server::{Oauth, ServerDefinition, ServerEndpoint};

/// The maximum length of an error message that quotes a server, in characters.
const MAX_ERROR_CHARS: usize = 500;

/// A folder of files with OAuth tokens, one file for each server.
#[derive(Clone, Debug)]
pub(crate) struct TokenStore {
    folder: PathBuf,
}

impl TokenStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns an HTTP client that sends the user's access token for the server and refreshes it
    /// before it expires. Returns `None` if the user has not logged in or the configuration sets a
    /// token.
    pub(super) async fn create_authorized_client(
        &self,
        server: &ServerDefinition,
        client: reqwest::Client,
    ) -> Result<Option<AuthClient<reqwest::Client>>, McpError> {
        let ServerEndpoint::Http {
            url, bearer: None, ..
        } = &server.endpoint
        else {
            return Ok(None);
        };
        let file = self.file_path(server);
        if !file.exists() {
            return Ok(None);
        }
        let failed = |error: AuthError| McpError::Start {
            server: server.name.clone(),
            reason: format!("its login: {error}"),
        };
        let mut manager = AuthorizationManager::new(url.as_str())
            .await
            .map_err(failed)?;
        manager.set_credential_store(TokenFile(file));
        if manager.initialize_from_store().await.map_err(failed)? {
            Ok(Some(AuthClient::new(client, manager)))
        } else {
            Err(McpError::Login {
                server: server.name.clone(),
                challenge: None,
            })
        }
    }

    /// True if the user has logged in to `server`.
    pub(crate) fn has_tokens(&self, server: &ServerDefinition) -> bool {
        self.file_path(server).exists()
    }

    fn file_path(&self, server: &ServerDefinition) -> PathBuf {
        let url = match &server.endpoint {
            ServerEndpoint::Http { url, .. } => url.as_str(),
            ServerEndpoint::Command { .. } | ServerEndpoint::Linked(_) => "",
        };
        let hash = blake3::hash(url.as_bytes()).to_hex();
        self.folder.join(format!(
            "{}-{}.json",
            haft_types::encode_file_name(&server.name),
            &hash.as_str()[..16]
        ))
    }
}

/// A login that waits until the user has visited the authorization page.
pub(crate) struct Authorization {
    session: AuthorizationSession,
}

impl Authorization {
    /// Finds the authorization page and registers haft with the authorization server if needed.
    /// `challenge` is the `WWW-Authenticate` header of the server's refusal.
    pub(crate) async fn begin(
        server: &ServerDefinition,
        tokens: &TokenStore,
        redirect: &str,
        challenge: Option<&str>,
    ) -> Result<Self, String> {
        let ServerEndpoint::Http { url, .. } = &server.endpoint else {
            return Err("it is a program on this machine, which needs no login".into());
        };
        super::install_crypto_provider();
        let mut manager = AuthorizationManager::new(url.as_str())
            .await
            .map_err(|error| format_auth_error(&error))?;
        let token_file = TokenFile(tokens.file_path(server));
        let granted = token_file
            .load()
            .await
            .ok()
            .flatten()
            .map(|stored| stored.granted_scopes)
            .unwrap_or_default();
        manager.set_credential_store(token_file);
        let found = manager
            .resolve_metadata_from_challenge(challenge)
            .await
            .map_err(|error| format_auth_error(&error))?;
        check_endpoints(&found.metadata, url)?;
        manager.set_metadata(found.metadata);
        let mut request = AuthorizationRequest::new(redirect)
            .with_client_name("haft")
            .with_initial_scope_selection();
        let Oauth {
            client_id,
            client_secret,
            metadata_url,
            scopes,
        } = &server.oauth;
        let extended = challenge
            .map(|challenge| extend_scopes(challenge, url, &granted))
            .unwrap_or_default();
        let scopes = if extended.is_empty() {
            scopes.clone()
        } else {
            extended
        };
        if !scopes.is_empty() {
            request = request.with_scopes(scopes);
        }
        if let Some(id) = client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = client_secret {
            request = request.with_client_secret(secret);
        }
        if let Some(page) = metadata_url {
            request = request.with_client_metadata_url(page);
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_, error)| format_auth_error(&error))?;
        Ok(Self { session })
    }

    /// Returns the URL of the authorization page.
    pub(crate) fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// True if the `state` parameter of `callback` belongs to this login. The check is needed
    /// because other programs on this machine can also request the callback URL.
    pub(crate) fn matches_state(&self, callback: &str) -> bool {
        let states = |url: &str| -> Vec<String> {
            let url = reqwest::Url::parse(url).ok();
            let pairs = url.iter().flat_map(reqwest::Url::query_pairs);
            pairs
                .filter(|(name, _)| name == "state")
                .map(|(_, value)| value.into_owned())
                .collect()
        };
        let own = states(self.url());
        own.len() == 1 && own == states(callback)
    }

    /// Exchanges the code in `callback` for tokens and stores them.
    pub(crate) async fn finish(&self, callback: &str) -> Result<(), String> {
        self.session
            .handle_callback_url(callback)
            .await
            .map(drop)
            .map_err(|error| format_auth_error(&error))
    }
}

/// Formats an error for the user, sanitized and shortened because it may quote the server.
fn format_auth_error(error: &AuthError) -> String {
    let text = haft_text::sanitize(&error.to_string()).replace('\n', " ");
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Checks that the URLs of a login use HTTPS and contain no user name or password. HTTP is allowed
/// only on the host of a server that is itself reached over HTTP.
fn check_endpoints(metadata: &AuthorizationMetadata, server: &str) -> Result<(), String> {
    let server = reqwest::Url::parse(server).ok();
    let named = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for address in named.into_iter().chain(&metadata.registration_endpoint) {
        let url = reqwest::Url::parse(address).ok();
        let is_fine = url.as_ref().is_some_and(|url| {
            let is_plain_http_host = server
                .as_ref()
                .is_some_and(|server| server.scheme() == "http" && server.host() == url.host());
            let is_web = url.scheme() == "https" || url.scheme() == "http" && is_plain_http_host;
            is_web && url.host().is_some() && url.username().is_empty() && url.password().is_none()
        });
        if !is_fine {
            let shown: String = haft_text::sanitize(address).chars().take(200).collect();
            return Err(format!(
                "the server names `{shown}` as a page of its login, which is not a safe address"
            ));
        }
    }
    Ok(())
}

/// Returns the scopes to request after the granted scopes proved insufficient: the granted scopes
/// and those that the server's challenge names. Returns an empty list if the challenge names no new
/// scope.
fn extend_scopes(challenge: &str, url: &str, granted: &[String]) -> Vec<String> {
    let Ok(base) = reqwest::Url::parse(url) else {
        return Vec::new();
    };
    let params = WWWAuthenticateParams::parse(challenge, &base);
    let named = params
        .scope
        .as_deref()
        .filter(|_| params.is_insufficient_scope())
        .unwrap_or_default();
    let new = named
        .split_whitespace()
        .map(str::to_owned)
        .filter(|scope| !granted.contains(scope));
    let new: Vec<_> = new.collect();
    if new.is_empty() {
        Vec::new()
    } else {
        granted.iter().cloned().chain(new).collect()
    }
}

/// The file with the tokens of one server.
struct TokenFile(PathBuf);

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| to_auth_error(&self.0, &error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(to_auth_error(&self.0, &error)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let bytes =
            serde_json::to_vec(&credentials).map_err(|error| to_auth_error(&self.0, &error))?;
        haft_files::replace_file(&self.0, &bytes, Durability::PowerCut)
            .map_err(|error| to_auth_error(&self.0, &error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(to_auth_error(&self.0, &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Locks the token file, because a refresh token can be used only once and other processes may
    /// refresh at the same time.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.0.with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || LockFile::acquire(&path));
        match locked.await {
            Ok(Ok(lock)) => Ok(Some(CredentialRefreshGuard::new(lock))),
            Ok(Err(error)) => Err(to_auth_error(&self.0, &error)),
            Err(error) => Err(to_auth_error(&self.0, &error)),
        }
    }
}

fn to_auth_error(path: &Path, error: &dyn std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(format!("the file `{}`: {error}", path.display()))
}
