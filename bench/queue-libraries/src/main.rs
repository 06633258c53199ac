//! Tests two queue libraries against the faults that haft's queue must survive: `cargo run --
//! postgres://USER@HOST/EMPTY_DATABASE`.
//!
//! In each test, a worker loses its task because it was silent for longer than its lease, and then
//! returns. By then the task belongs to another worker, or to the returning worker for the second
//! time. Each library is called through the functions that its own worker uses. The last line of
//! output reports which library passed.

use apalis_core::backend::TaskSink;
use apalis_core::task::status::Status;
use apalis_core::worker::context::WorkerContext;
use apalis_postgres::queries::{self, ResultPayload};
use apalis_postgres::{Config, PostgresStorage};
use graphile_worker::{JobSpec, WorkerUtils};
use graphile_worker_queries::complete_job::complete_job;
use graphile_worker_queries::get_job::get_job;
use graphile_worker_queries::task_identifiers::get_tasks_details;
use sqlx::{PgConnection, PgPool};

/// The number of attempts for each fault.
const TRIES: usize = 100;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("the address of an empty database");
    let pool = PgPool::connect(&url).await.unwrap();
    let apalis = test_apalis(&pool).await;
    let graphile = test_graphile(&pool).await;
    println!("held: apalis {apalis}, graphile_worker {graphile}");
}

async fn test_apalis(pool: &PgPool) -> bool {
    PostgresStorage::setup(pool).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let mut ended_twice = 0;
    let mut stolen = 0;
    for n in 0..TRIES {
        let config = Config::default().queue(format!("faults-{n}")).batch_size(1);
        let mut storage = PostgresStorage::<u32>::new(pool).with_config(config.clone());
        storage.push(7_u32).await.unwrap();
        let a = WorkerContext::new(&format!("a{n}"));
        let b = WorkerContext::new(&format!("b{n}"));
        for worker in [&a, &b] {
            queries::register_worker(&mut *connection, &config.queue.to_string(), worker, &Default::default(), "try")
                .await
                .unwrap();
        }
        ended_twice += usize::from(ends_task_twice(&mut connection, &config, &a).await);
        storage.push(8_u32).await.unwrap();
        stolen += usize::from(steals_task_back(&mut connection, &config, &a, &b).await);
    }
    println!("apalis-postgres: a task ended twice in {ended_twice} of {TRIES}, a late worker took it in {stolen} of {TRIES}");
    ended_twice + stolen == 0
}

async fn take_task(connection: &mut PgConnection, config: &Config, worker: &WorkerContext) -> String {
    queries::keep_alive(connection, &config.queue.to_string(), worker).await.unwrap();
    let mut taken = queries::fetch_next(connection, config, worker).await.unwrap();
    taken.pop().expect("a task").task_id().unwrap().to_string()
}

/// Simulates a worker that is silent for longer than its lease.
async fn expire_worker(connection: &mut PgConnection, config: &Config, worker: &WorkerContext) {
    let sql = "UPDATE apalis.workers SET last_seen = now() - interval '1 hour' WHERE id = $1";
    sqlx::query(sql).bind(worker.name()).execute(&mut *connection).await.unwrap();
    queries::reenqueue_orphaned(connection, &config.queue.to_string(), 5).await.unwrap();
}

/// Returns true if a worker that lost its task and took it again can end both runs.
async fn ends_task_twice(connection: &mut PgConnection, config: &Config, worker: &WorkerContext) -> bool {
    let first = take_task(connection, config, worker).await;
    queries::lock_tasks(connection, &[first.clone()], worker.name()).await.unwrap();
    expire_worker(connection, config, worker).await;
    let second = take_task(connection, config, worker).await;
    assert_eq!(first, second);
    queries::lock_tasks(connection, &[first.clone()], worker.name()).await.unwrap();
    let mut accepted = 0;
    for run in 1..=2 {
        let result = ResultPayload {
            task_id: first.parse().unwrap(),
            attempt: run,
            status: Status::Done,
            result: Ok(serde_json::json!(run)),
        };
        accepted += queries::handle_results(connection, &[&result], worker.name()).await.unwrap();
    }
    accepted == 2
}

/// Returns true if a worker that lost its task can take it back from the new owner.
async fn steals_task_back(connection: &mut PgConnection, config: &Config, a: &WorkerContext, b: &WorkerContext) -> bool {
    let task = take_task(connection, config, a).await;
    expire_worker(connection, config, a).await;
    assert_eq!(take_task(connection, config, b).await, task);
    queries::lock_tasks(connection, &[task], a.name()).await.unwrap() == 1
}

async fn test_graphile(pool: &PgPool) -> bool {
    let utils = WorkerUtils::new(pool.clone(), "graphile_worker");
    utils.migrate().await.unwrap();
    let details = get_tasks_details(pool, "graphile_worker", vec!["task".to_owned()]).await.unwrap();
    let mut ended = 0;
    for n in 0..TRIES {
        utils.add_raw_job("task", n, JobSpec::default()).await.unwrap();
        let job = get_job(pool, &details, "graphile_worker", "a", &[], None).await.unwrap().expect("a task");
        // The library's sweep calls this function for a silent worker.
        utils.force_unlock_workers(&["a"]).await.unwrap();
        let again = get_job(pool, &details, "graphile_worker", "b", &[], None).await.unwrap().expect("the same task");
        assert_eq!(job.id(), again.id());
        complete_job(pool, &job, "a", "graphile_worker").await.unwrap();
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM graphile_worker._private_jobs").fetch_one(pool).await.unwrap();
        ended += usize::from(left == 0);
        complete_job(pool, &again, "b", "graphile_worker").await.unwrap();
    }
    println!("graphile_worker: a late worker ended a task that another one had in {ended} of {TRIES}");
    ended == 0
}
