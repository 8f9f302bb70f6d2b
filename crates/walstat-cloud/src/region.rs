//! In which region a bucket is, where another one was asked: the store says so in the header of a redirection
//! to nowhere, of which the client tells no more than that it is one.

use futures_util::future::{BoxFuture, FutureExt};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use std::fmt;

/// The bucket is in another region than was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherRegion {
    region: String,
    /// An endpoint was given, which stays what it is whatever region is set.
    has_endpoint: bool,
}

impl fmt::Display for OtherRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherRegion { region, has_endpoint } = self;
        let endpoint = if *has_endpoint { ", and give the endpoint of that region" } else { "" };
        write!(f, "the bucket is in the region {region}: set AWS_REGION={region}{endpoint}")
    }
}

impl std::error::Error for OtherRegion {}

/// Connects to S3, with an error that names the region in the place of such an answer.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) has_endpoint: bool,
}

#[derive(Debug)]
struct Service {
    client: HttpClient,
    has_endpoint: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Service { client, has_endpoint: self.has_endpoint }))
    }
}

impl HttpService for Service {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> BoxFuture<'f, Result<HttpResponse, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        let told = async move {
            let answer = self.client.execute(request).await?;
            let region = answer.headers().get("x-amz-bucket-region");
            let region = region.filter(|_| answer.status().is_redirection());
            let region = region.and_then(|region| region.to_str().ok()).filter(|it| is_name(it));
            let Some(region) = region.map(str::to_owned) else { return Ok(answer) };
            let other = OtherRegion { region, has_endpoint: self.has_endpoint };
            Err(HttpError::new(HttpErrorKind::Unknown, other))
        };
        told.boxed()
    }
}

/// Whether it can be shown as the name of a region.
pub(crate) fn is_name(region: &str) -> bool {
    const LETTERS_MAX: usize = 64;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !region.is_empty() && region.len() <= LETTERS_MAX && region.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_was_given_is_to_be_given_anew() {
        let told =
            |has_endpoint| OtherRegion { region: "eu-west-1".to_owned(), has_endpoint }.to_string();
        let set = "the bucket is in the region eu-west-1: set AWS_REGION=eu-west-1";
        assert_eq!(told(false), set);
        assert_eq!(told(true), format!("{set}, and give the endpoint of that region"));
        assert!(
            is_name("us-gov-east-1")
                && !is_name("")
                && !is_name("a b")
                && !is_name(&"a".repeat(65))
        );
    }
}
