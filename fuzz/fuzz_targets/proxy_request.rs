//! Any request to the proxy of confined commands: the server receives exactly the request that was
//! checked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| haft_sandbox::check_proxy_request(data));
