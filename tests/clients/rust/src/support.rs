use std::cell::RefCell;
use std::fmt::Debug;
use std::future::Future;
use std::panic::{catch_unwind, set_hook, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use azure_core::{Etag, Result, RetryOptions, TransportOptions};
use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::operations::QueryEntityBuilder;
use azure_data_tables::prelude::*;
use azure_storage::{CloudLocation, StorageCredentials};
use futures::StreamExt;
use serde_json::{json, Map, Value};

thread_local! {
    static RUNTIME: tokio::runtime::Runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    static REASON: RefCell<String> = const { RefCell::new(String::new()) };
}

static TABLES: AtomicU32 = AtomicU32::new(0);

/// Keeps the message and the place of a panic for the case that it ends.
pub fn record_panics() {
    set_hook(Box::new(|panic| {
        REASON.with(|reason| *reason.borrow_mut() = panic.to_string())
    }));
}

/// Runs a case and prints how it ended.
pub fn check(name: &str, body: impl FnOnce() + UnwindSafe) {
    let ok = catch_unwind(body).is_ok();
    let reason = REASON.with(|reason| reason.take());
    println!("{}", json!({ "name": name, "ok": ok, "reason": reason }));
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

pub fn account_key() -> StorageCredentials {
    StorageCredentials::access_key(setting("TABLE_ACCOUNT"), setting("TABLE_KEY"))
}

pub fn service() -> TableServiceClient {
    service_by(account_key())
}

pub fn service_by(credentials: StorageCredentials) -> TableServiceClient {
    service_at(setting("TABLE_ENDPOINT"), credentials)
}

pub fn service_at(uri: String, credentials: StorageCredentials) -> TableServiceClient {
    let location = CloudLocation::Custom {
        account: setting("TABLE_ACCOUNT"),
        uri,
    };
    TableServiceClientBuilder::with_location(location, credentials)
        // a retry would hide a failure of the server
        .retry(RetryOptions::none())
        .transport(TransportOptions::new(Arc::new(transport::Transport::default())))
        .build()
}

pub fn new_name() -> String {
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("rust{moment}x{}", TABLES.fetch_add(1, Ordering::Relaxed))
}

pub fn new_table() -> TableClient {
    let table = service().table_client(new_name());
    wait(table.create().into_future()).unwrap();
    table
}

/// An entity of the partition "se" with the properties of an object.
pub fn person(row_key: &str, more: Value) -> Value {
    let mut entity = json!({ "PartitionKey": "se", "RowKey": row_key });
    entity
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    entity
}

pub fn try_insert(table: &TableClient, entity: &Value) -> Result<Etag> {
    let builder = table.insert::<_, Value>(entity)?;
    Ok(wait(builder.into_future())?.etag)
}

pub fn insert(table: &TableClient, entity: &Value) -> Etag {
    try_insert(table, entity).unwrap()
}

/// The client of an entity; the caller doubles quotation marks, as it must.
pub fn at(table: &TableClient, partition_key: &str, row_key: &str) -> EntityClient {
    table.partition_key_client(partition_key).entity_client(row_key)
}

pub fn try_get(table: &TableClient, partition_key: &str, row_key: &str) -> Result<(Value, Etag)> {
    let response = wait(at(table, partition_key, row_key).get::<Value>().into_future())?;
    Ok((response.entity, response.etag))
}

/// The properties of an entity, without its keys, its Timestamp and what describes it.
pub fn get(table: &TableClient, partition_key: &str, row_key: &str) -> Value {
    content(try_get(table, partition_key, row_key).unwrap().0)
}

pub fn content(entity: Value) -> Value {
    let Value::Object(properties) = entity else {
        panic!("{entity} is not an object")
    };
    let own = |name: &str| {
        !name.starts_with("odata.")
            && !name.starts_with("Timestamp")
            && !["PartitionKey", "RowKey"].contains(&name)
    };
    Value::Object(
        properties
            .into_iter()
            .filter(|(name, _)| own(name))
            .collect::<Map<_, _>>(),
    )
}

/// What a query finds, page by page.
pub fn pages(query: QueryEntityBuilder) -> Result<Vec<Vec<Value>>> {
    wait(async {
        let mut stream = query.into_stream::<Value>();
        let mut found = Vec::new();
        while let Some(page) = stream.next().await {
            found.push(page?.entities);
        }
        Ok(found)
    })
}

/// The row keys that a query finds.
pub fn rows(query: QueryEntityBuilder) -> String {
    let found = pages(query).unwrap().concat();
    let keys: Vec<_> = found
        .iter()
        .map(|entity| entity["RowKey"].as_str().unwrap())
        .collect();
    keys.join(" ")
}

/// Checks the status and the code of a refusal.
pub fn refused<T: Debug>(result: Result<T>, status: u16, code: &str) {
    let error = result.expect_err("not refused");
    let http = error.as_http_error().unwrap_or_else(|| panic!("{error:?}"));
    let text = http.to_string();
    let quoted = format!(r#"\"code\":\"{code}\""#); // the client knows codes of headers only
    let is_code = http.error_code() == Some(code) || text.contains(&quoted);
    assert!(
        http.status() as u16 == status && is_code,
        "not {status} {code}: {text}"
    );
}

mod transport {
    use azure_core::error::{Error, ErrorKind, ResultExt};
    use azure_core::headers::{HeaderName, HeaderValue, Headers};
    use azure_core::{Body, HttpClient, Method, Request, Response, Result, StatusCode};
    use futures::TryStreamExt;

    /// The same library that the client uses, without TLS.
    #[derive(Debug, Default)]
    pub struct Transport(reqwest::Client);

    #[async_trait::async_trait]
    impl HttpClient for Transport {
        async fn execute_request(&self, request: &Request) -> Result<Response> {
            let Body::Bytes(body) = request.body().clone() else {
                return Err(Error::message(ErrorKind::Other, "the body is a stream"));
            };
            let method: &Method = request.method();
            let method = reqwest::Method::from_bytes(method.as_ref().as_bytes()).unwrap();
            let mut sent = self.0.request(method, request.url().clone()).body(body);
            for (name, value) in request.headers().iter() {
                sent = sent.header(name.as_str(), value.as_str());
            }
            let answer = sent.send().await.context(ErrorKind::Io, "no answer")?;
            let status = StatusCode::try_from(answer.status().as_u16()).unwrap();
            let mut headers = Headers::new();
            for (name, value) in answer.headers() {
                let text = value.to_str().unwrap().to_owned();
                headers.insert(
                    HeaderName::from(name.as_str().to_owned()),
                    HeaderValue::from(text),
                );
            }
            let stream = answer
                .bytes_stream()
                .map_err(|error| Error::full(ErrorKind::Io, error, "the answer broke off"));
            Ok(Response::new(status, headers, Box::pin(stream)))
        }
    }
}
