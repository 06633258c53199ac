//! Runs the conformance checks on the SQLite store, without and with a cache.

macro_rules! on_each_store {
    ($($topic:ident::$check:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $check() {
                    let place = crate::support::Place::new();
                    haft_store::conformance::run(stringify!($check), &place.open()).await;
                }
            )+
        }

        mod cached {
            $(
                #[tokio::test]
                async fn $check() {
                    let place = crate::support::Place::new();
                    let store = place.try_open_with(&haft_store::StoreConfig::default()).unwrap();
                    haft_store::conformance::run(stringify!($check), &store).await;
                }
            )+
        }
    };
}

haft_store::for_each_conformance_check!(on_each_store);
