//! Buckets, each with its client: made of the environment, once a process; and what was listed in them, which
//! what is read later is held against.

use crate::contact::Contact;
use crate::environment::{check, configured, variables};
use crate::options::options;
use crate::reason::{Reason, scrubbed};
use crate::region::Connector;
use crate::url::{Scheme, Url};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::{ClientConfigKey, ObjectMeta, ObjectStore, RetryConfig};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A bucket, or a container.
pub(crate) struct Bucket {
    name: String,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) pages: Arc<dyn PaginatedListStore>,
    /// How its store behaves.
    pub(crate) contact: Contact,
    /// Whether its store gives all of an object, whatever part of it is asked for.
    pub(crate) gives_no_parts: AtomicBool,
    listed: Mutex<HashMap<Box<str>, Noted>>,
}

/// A client knows secrets: only the bucket's name is shown.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An object as it was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// The ETag, without quotes: some stores list it so and answer with quotes.
    pub(crate) tag: Option<Box<str>>,
}

/// What is known of an object.
#[derive(Debug)]
struct Noted {
    listed: Listed,
    /// It was had, or a part of it.
    is_had: bool,
    /// It was tried for as long as an object is tried.
    is_spent: bool,
}

impl Listed {
    pub(crate) fn of(meta: &ObjectMeta) -> Listed {
        let plain = |tag: &'_ str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
        let tag = meta.e_tag.as_deref().map(plain).filter(|tag| !tag.is_empty());
        Listed {
            bytes: meta.size,
            modified: meta.last_modified.into(),
            tag: tag.map(String::into_boxed_str),
        }
    }
}

impl Bucket {
    fn table(&self) -> MutexGuard<'_, HashMap<Box<str>, Noted>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was listed under a key.
    pub(crate) fn listed(&self, key: &str) -> Option<Listed> {
        self.table().get(key).map(|noted| noted.listed.clone())
    }

    /// Takes note of what is listed under a key.
    pub(crate) fn note(&self, key: &str, listed: Listed) {
        self.table().insert(key.into(), Noted { listed, is_had: false, is_spent: false });
    }

    /// Takes note that an object was had, or a part of it.
    pub(crate) fn note_had(&self, key: &str) {
        let mut table = self.table();
        let Some(noted) = table.get_mut(key) else { return };
        noted.is_spent = false;
        if !std::mem::replace(&mut noted.is_had, true) {
            self.contact.note_object();
        }
    }

    /// Takes note that an object was tried for as long as something is tried.
    pub(crate) fn note_spent(&self, key: &str) {
        if let Some(noted) = self.table().get_mut(key) {
            noted.is_spent = true;
        }
    }

    /// Whether it was.
    pub(crate) fn is_spent(&self, key: &str) -> bool {
        self.table().get(key).is_some_and(|noted| noted.is_spent)
    }
}

static BUCKETS: Mutex<BTreeMap<(Scheme, String), Arc<Bucket>>> = Mutex::new(BTreeMap::new());

/// The bucket of a URL.
pub(crate) fn bucket(url: &Url) -> Result<Arc<Bucket>, Reason> {
    let mut buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (url.scheme, url.bucket.clone());
    if let Some(bucket) = buckets.get(&key) {
        return Ok(Arc::clone(bucket));
    }
    // Which TLS `reqwest::Client` has is left to us. Another one is installed where the library is used by
    // a program that has chosen one: that is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (objects, pages) = client(url).map_err(|text| Reason::lasting(&text))?;
    let listed = Mutex::default();
    let (contact, gives_no_parts) = (Contact::default(), AtomicBool::new(false));
    let name = url.bucket.clone();
    let bucket = Arc::new(Bucket { name, objects, pages, contact, gives_no_parts, listed });
    buckets.insert(key, Arc::clone(&bucket));
    Ok(bucket)
}

/// A new reading of these paths begins. All stores are asked again, also those that were given up; and what
/// was listed in the buckets that the paths are in is forgotten: it may have been rewritten since.
pub fn begin(paths: &[PathBuf]) {
    let buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    buckets.values().for_each(|bucket| bucket.contact.begin());
    for url in paths.iter().filter_map(|path| Url::parse(path).ok()) {
        if let Some(bucket) = buckets.get(&(url.scheme, url.bucket)) {
            *bucket.table() = HashMap::new();
        }
    }
}

/// Why the store of a URL is not asked any more, if it is not: nothing was had from it for too long.
pub fn given_up(path: &Path) -> Option<String> {
    let url = Url::parse(path).ok()?;
    let buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    buckets.get(&(url.scheme, url.bucket))?.contact.given_up()
}

type Client = (Arc<dyn ObjectStore>, Arc<dyn PaginatedListStore>);

fn client(url: &Url) -> Result<Client, String> {
    let said = |error: object_store::Error| match error {
        object_store::Error::Generic { source, .. } => scrubbed(&source.to_string()),
        other => scrubbed(&other.to_string()),
    };
    let variables = &variables(url.scheme);
    check(variables)?;
    Ok(match url.scheme {
        Scheme::S3 => both(Arc::new(s3(url, variables)?.build().map_err(said)?)),
        Scheme::Google => both(Arc::new(google(url, variables)?.build().map_err(said)?)),
        Scheme::Azure => both(Arc::new(azure(url, variables)?.build().map_err(said)?)),
    })
}

/// What the environment says of a store.
type Variables = BTreeMap<String, String>;

fn both<T: ObjectStore + PaginatedListStore>(client: Arc<T>) -> Client {
    (Arc::clone(&client) as _, client as _)
}

/// A connection that stands still for so long is broken. As long as something comes it may take its time: a
/// part on a slow line, a long object of a store that gives no parts.
const CLIENT: [(ClientConfigKey, &str); 3] = [
    (ClientConfigKey::ConnectTimeout, "5 seconds"),
    (ClientConfigKey::ReadTimeout, "15 seconds"),
    (ClientConfigKey::Timeout, "7 days"),
];

/// What is tried again, and for how long, is decided in one place, which is `patience`.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// An endpoint without what else may stand in a URL: it is shown where it does not answer.
fn checked(endpoint: &str) -> Result<String, String> {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    if !["http", "https"].contains(&scheme) || host.is_empty() {
        return Err("the endpoint is no URL: expected http://HOST:PORT or https://HOST".to_owned());
    }
    if host.contains('@') || rest.contains('?') {
        return Err(
            "the endpoint has credentials in it: they belong into the environment".to_owned()
        );
    }
    // A port may be too large, or the host none.
    if !endpoint.is_ascii() || reqwest::Url::parse(endpoint).is_err() {
        return Err("the endpoint is no URL that can be asked".to_owned());
    }
    Ok(endpoint.trim_end_matches('/').to_owned())
}

fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}

/// `https://s3.….amazonaws.com`, or the endpoint asked for.
fn s3(url: &Url, variables: &Variables) -> Result<AmazonS3Builder, String> {
    let builder = configured(variables, AmazonS3Builder::new(), AmazonS3Builder::with_config);
    let mut builder = builder.with_bucket_name(&url.bucket).with_retry(once());
    for (key, value) in CLIENT {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let set = |key| builder.get_config_value(&key);
    let endpoint = options().endpoint.clone();
    let endpoint = endpoint
        .or_else(|| set(AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| set(AmazonS3ConfigKey::Endpoint));
    let builder = builder.with_http_connector(Connector { has_endpoint: endpoint.is_some() });
    let Some(endpoint) = endpoint else { return Ok(builder) };
    let endpoint = checked(&endpoint)?;
    let builder = builder.with_allow_http(is_plain(&endpoint));
    Ok(builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint))
}

/// `https://storage.googleapis.com`, or the endpoint asked for. An emulator takes no credentials.
fn google(url: &Url, variables: &Variables) -> Result<GoogleCloudStorageBuilder, String> {
    let builder = GoogleCloudStorageBuilder::new();
    let builder = configured(variables, builder, GoogleCloudStorageBuilder::with_config);
    let mut builder = builder.with_bucket_name(&url.bucket).with_retry(once());
    for (key, value) in CLIENT {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let emulator = variables.get("STORAGE_EMULATOR_HOST");
    let emulator = emulator
        .map(|host| if host.contains("://") { host.clone() } else { format!("http://{host}") });
    let Some(endpoint) = options().endpoint.clone().or(emulator) else { return Ok(builder) };
    let endpoint = checked(&endpoint)?;
    let has_credentials = [
        GoogleConfigKey::ServiceAccount,
        GoogleConfigKey::ServiceAccountKey,
        GoogleConfigKey::ApplicationCredentials,
        GoogleConfigKey::BearerToken,
    ];
    let has_credentials = has_credentials.iter().any(|key| builder.get_config_value(key).is_some());
    let allow = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
    let plain = is_plain(&endpoint);
    let builder = builder.with_config(allow, plain.to_string()).with_base_url(&endpoint);
    Ok(if plain && !has_credentials { builder.with_skip_signature(true) } else { builder })
}

/// `https://ACCOUNT.blob.core.windows.net`, or the endpoint asked for. The variables are those of the az
/// command.
fn azure(url: &Url, variables: &Variables) -> Result<MicrosoftAzureBuilder, String> {
    let builder = MicrosoftAzureBuilder::new();
    let builder = configured(variables, builder, MicrosoftAzureBuilder::with_config);
    let mut builder = builder.with_container_name(&url.bucket).with_retry(once());
    for (key, value) in CLIENT {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    let connection = variables.get("AZURE_STORAGE_CONNECTION_STRING").map_or("", String::as_str);
    let connection: BTreeMap<&str, &str> =
        connection.split(';').filter_map(|part| part.split_once('=')).collect();
    let given = [
        (AzureConfigKey::AccountName, "AZURE_STORAGE_ACCOUNT", "AccountName"),
        (AzureConfigKey::AccessKey, "AZURE_STORAGE_KEY", "AccountKey"),
        (AzureConfigKey::SasKey, "AZURE_STORAGE_SAS_TOKEN", "SharedAccessSignature"),
        (AzureConfigKey::Endpoint, "AZURE_STORAGE_ENDPOINT", "BlobEndpoint"),
    ];
    for (key, variable, part) in given {
        let value = variables.get(variable).map(String::as_str).or(connection.get(part).copied());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            builder = builder.with_config(key, value);
        }
    }
    let own = builder.get_config_value(&AzureConfigKey::Endpoint);
    let Some(endpoint) = options().endpoint.clone().or(own) else { return Ok(builder) };
    let endpoint = checked(&endpoint)?;
    let account = builder.get_config_value(&AzureConfigKey::AccountName).unwrap_or_default();
    let allow = AzureConfigKey::Client(ClientConfigKey::AllowHttp);
    let builder = builder.with_config(allow, is_plain(&endpoint).to_string());
    Ok(builder.with_endpoint(with_account(endpoint, &account)))
}

/// An emulator has the account's name in the path, where the provider has it in the host's.
fn with_account(endpoint: String, account: &str) -> String {
    let host = endpoint.split_once("://").map_or("", |(_, rest)| rest);
    let is_in_host = host.starts_with(&format!("{account}."));
    if host.contains('/') || is_in_host || !is_plain(&endpoint) {
        endpoint
    } else {
        format!("{endpoint}/{account}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_with_credentials_is_refused_and_not_shown() {
        for endpoint in ["http://user:secret@host", "https://host/?sig=secret", "host:80"] {
            let error = checked(endpoint).expect_err(endpoint);
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(checked("http://host:80/"), Ok("http://host:80".to_owned()));
        for endpoint in ["http://host:99999", "http://[::1", "http://a host", "http://h\u{f6}st"] {
            assert!(checked(endpoint).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn whoever_begins_anew_does_not_hold_what_comes_against_what_was_listed_before() {
        let of =
            |text: &str| bucket(&Url::parse(Path::new(text)).expect("a URL")).expect("a client");
        let (one, other) = (of("s3://begun/a"), of("s3://not-begun/a"));
        let modified = SystemTime::UNIX_EPOCH;
        for bucket in [&one, &other] {
            bucket.note("a", Listed { bytes: 1, modified, tag: None });
            bucket.note_spent("a");
        }
        begin(&[PathBuf::from("s3://begun/a"), PathBuf::from("/on/disk")]);
        assert!(one.listed("a").is_none() && !one.is_spent("a"));
        assert!(other.listed("a").is_some() && other.is_spent("a"));
    }

    #[test]
    fn an_emulator_has_the_account_in_its_path() {
        let of = |endpoint: &str| with_account(endpoint.to_owned(), "acct");
        assert_eq!(of("http://127.0.0.1:10000"), "http://127.0.0.1:10000/acct");
        assert_eq!(of("http://127.0.0.1:10000/acct"), "http://127.0.0.1:10000/acct");
        assert_eq!(of("http://acct.blob.local"), "http://acct.blob.local");
        assert_eq!(of("https://other.example"), "https://other.example");
    }
}
