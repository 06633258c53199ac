//! Runs the conformance checks of stores on the PostgreSQL store.

macro_rules! on_a_server {
    ($($topic:ident::$check:ident),+ $(,)?) => {
        mod postgres {
            $(
                #[tokio::test]
                async fn $check() {
                    let Some(server) = crate::server::Server::new().await else { return };
                    haft_store::conformance::run(stringify!($check), &server.connect()).await;
                    server.end().await;
                }
            )+
        }
    };
}

haft_store::for_each_conformance_check!(on_a_server);
