"""The rows about the service: calls, time, batches, refusals, models, certificates and tokens."""

from panels import Panel, Query, Row, quantiles, share

CALLS = Row(
    "Calls",
    [
        Panel(
            "timeseries",
            "Calls by status",
            "INVALID_ARGUMENT and NOT_FOUND are the callers' fault; RESOURCE_EXHAUSTED is too much load; INTERNAL and "
            "UNKNOWN are Glyphline's; UNAVAILABLE is a server that starts, stops or has no worker.",
            [Query("sum by (grpc_code) (rate(grpc_server_handled_total{CALLS}[$__rate_interval]))", "{{grpc_code}}")],
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "timeseries",
            "Time of calls that read one image",
            "From a call's begin to its end in the server. If it rises, see below where the time goes.",
            quantiles("grpc_server_handling_seconds_bucket{READS}", (0.5, 0.95, 0.99)),
            unit="s",
            steps=[(0.5, "red")],
        ),
        Panel(
            "timeseries",
            "Calls slower than half a second",
            "Share of the calls that read one image, over four windows. 1 % is the budget, the dashed line. "
            "GlyphlineLatencyBudgetBurn fires at 14.4 % over an hour, 6 % over six hours, 3 % over a day. All "
            "instances of the job.",
            [
                Query(f"job:glyphline_slow_calls:ratio_rate{window}{{RECORDED_OF_JOB}}", window)
                for window in ("5m", "1h", "6h", "1d")
            ],
            unit="percentunit",
            steps=[(0.01, "red")],
        ),
    ],
)

TIME = Row(
    "Where the time goes",
    [
        Panel(
            "timeseries",
            "Waiting for a worker",
            "Time that an image waits. If it rises while the stages do not, more comes than can be read: add workers "
            "or replicas.",
            quantiles("glyphline_queue_seconds_bucket{SERVER}", (0.5, 0.95, 0.99)),
            unit="s",
        ),
        Panel(
            "timeseries",
            "Time of a batch by stage",
            "95 % take no longer. decode_image: files to pixels; infer: the network; search: the text; encode: the "
            "reply.",
            quantiles("glyphline_stage_seconds_bucket{SERVER}", (0.95,), by="stage", legend="{{stage}}"),
            unit="s",
        ),
        Panel(
            "timeseries",
            "Work by stage",
            "Seconds of work in a second. All but encode is the workers': when that comes to the number of workers, "
            "they are busy all the time.",
            [Query("sum by (stage) (rate(glyphline_stage_seconds_sum{SERVER}[$__rate_interval]))", "{{stage}}")],
            stacked=True,
        ),
        Panel(
            "timeseries",
            "Images that wait",
            "In the queue of each server, beside what fits in one.",
            [
                Query("glyphline_queue_depth{SERVER}", "{{instance}}"),
                Query("max(glyphline_queue_limit{SERVER})", "limit"),
            ],
        ),
        Panel(
            "timeseries",
            "Time of calls by method",
            "95 % take no longer. Streams last as long as their callers keep them, and are left out.",
            quantiles(
                'grpc_server_handling_seconds_bucket{CALLS, grpc_type="unary"}',
                (0.95,),
                by="grpc_method",
                legend="{{grpc_method}}",
            ),
            unit="s",
        ),
        Panel(
            "timeseries",
            "CPU of the front process",
            "In cores. Near 1 it is what holds a server up, and more workers do not help: add replicas.",
            [Query("rate(process_cpu_seconds_total{SERVER}[$__rate_interval])", "{{instance}}")],
            steps=[(0.9, "red")],
        ),
    ],
)

BATCHES = Row(
    "Throughput and batches",
    [
        Panel(
            "timeseries",
            "Images by outcome",
            "Each image counts once. invalid_image and invalid_request are the callers' fault; rejected and expired "
            "are too much load; worker_lost and internal are Glyphline's.",
            [Query("sum by (outcome) (rate(glyphline_images_total{SERVER}[$__rate_interval]))", "{{outcome}}")],
            unit="ops",
            stacked=True,
            width=6,
        ),
        Panel(
            "timeseries",
            "Images read by version",
            "Watch it when a new version takes over.",
            [
                Query(
                    'sum by (model, version) (rate(glyphline_images_total{MODEL, outcome="ok"}[$__rate_interval]))',
                    "{{model}} {{version}}",
                )
            ],
            unit="ops",
            stacked=True,
            width=6,
        ),
        Panel(
            "timeseries",
            "Images of a run",
            "Runs of the network grow with the load, and an image costs less in a large one. Always 1 under load: no "
            "two images have the same options and about the same width.",
            [
                Query(
                    share(
                        "sum(rate(glyphline_batch_size_sum{SERVER}[$__rate_interval]))",
                        "sum(rate(glyphline_batch_size_count{SERVER}[$__rate_interval]))",
                    ),
                    "mean",
                ),
                *quantiles("glyphline_batch_size_bucket{SERVER}", (0.95,)),
            ],
            width=6,
        ),
        Panel(
            "timeseries",
            "Padding",
            "Share of a run's pixels that is padding, which costs as much as strips do. A tenth is usual.",
            [
                Query(
                    share(
                        "sum(rate(glyphline_batch_padding_ratio_sum{SERVER}[$__rate_interval]))",
                        "sum(rate(glyphline_batch_padding_ratio_count{SERVER}[$__rate_interval]))",
                    ),
                    "mean",
                )
            ],
            unit="percentunit",
            width=6,
        ),
    ],
)

REFUSED = Row(
    "What is refused",
    [
        Panel(
            "timeseries",
            "Refusals by reason",
            "queue_full, not_ready, deadline: too much load, or too few workers. image, request, model: the callers. "
            "unauthenticated, permission, rate, idle: tokens and limits.",
            [Query("sum by (reason) (rate(glyphline_rejected_total{SERVER}[$__rate_interval]))", "{{reason}}")],
            unit="ops",
            stacked=True,
        ),
        Panel(
            "timeseries",
            "Turned away for want of capacity",
            "Share of what came. More than 1 % for a quarter of an hour fires GlyphlineTurnsAway. All instances of the "
            "job.",
            [Query("job:glyphline_turned_away:ratio_rate5m{RECORDED_OF_JOB}", "{{job}}")],
            unit="percentunit",
            steps=[(0.01, "yellow"), (0.1, "red")],
        ),
        Panel(
            "timeseries",
            "Images that cannot be read",
            "Share of all images. A jump is a fault where the images come from.",
            [
                Query(
                    share(
                        'sum(rate(glyphline_images_total{SERVER, outcome="invalid_image"}[$__rate_interval]))',
                        "sum(rate(glyphline_images_total{SERVER}[$__rate_interval]))",
                    ),
                    "none, damaged or too large",
                ),
                Query(
                    share(
                        "sum(rate(glyphline_too_wide_total{SERVER}[$__rate_interval]))",
                        "sum(rate(glyphline_images_total{SERVER}[$__rate_interval]))",
                    ),
                    "too wide, among them",
                ),
            ],
            unit="percentunit",
        ),
    ],
)

MODELS = Row(
    "Models and workers",
    [
        Panel(
            "table",
            "Models held",
            "By each server: what reads with them, what was asked to, and the hash of the bundle, which must be the "
            "same everywhere for one version.",
            [Query("glyphline_model_info{MODEL}")],
            width=24,
            height=6,
            hidden=["job"],
        ),
        Panel(
            "timeseries",
            "Versions loaded and refused",
            "A refused version cannot be used; the log says why under `model refused`, and the version before it goes "
            "on.",
            [
                Query(
                    "sum by (model, outcome) (increase(glyphline_model_loads_total{SERVER}[$__rate_interval]))",
                    "{{model}} {{outcome}}",
                )
            ],
            bars=True,
        ),
        Panel(
            "timeseries",
            "Workers of each server",
            "Ready or at work. While a new version is loaded there is one more.",
            [Query("glyphline_workers{SERVER}", "{{instance}}")],
        ),
        Panel(
            "timeseries",
            "Workers that died",
            "And were replaced, over five minutes. More than 3 in 15 minutes fires GlyphlineWorkersDie.",
            [Query("increase(glyphline_worker_losses_total{SERVER}[5m])", "{{instance}}")],
        ),
    ],
)

SECURITY = Row(
    "Certificates and tokens",
    [
        Panel(
            "stat",
            "Certificate expires in",
            "The first of all. No data: no server has a certificate. Below a week fires GlyphlineCertificateExpires.",
            [Query("min(glyphline_certificate_expiry_timestamp_seconds{SERVER} > 0) - time()")],
            unit="s",
            steps=[(7 * 86400, "yellow"), (14 * 86400, "green")],
            falling=True,
            height=6,
        ),
        Panel(
            "timeseries",
            "Files read again",
            "Certificates and files of tokens that changed. failed: the last good one stays in use.",
            [
                Query(
                    "sum by (file, outcome) (increase(glyphline_security_reloads_total{SERVER}[$__rate_interval]))",
                    "{{file}} {{outcome}}",
                )
            ],
            bars=True,
            height=6,
        ),
        Panel(
            "timeseries",
            "Callers refused",
            "unauthenticated: a wrong token or none; permission: a token that may only read; rate: a token that has "
            "taken its share.",
            [
                Query(
                    "sum by (reason) (rate(glyphline_rejected_total"
                    '{SERVER, reason=~"unauthenticated|permission|rate"}[$__rate_interval]))',
                    "{{reason}}",
                )
            ],
            unit="ops",
            height=6,
        ),
    ],
)
