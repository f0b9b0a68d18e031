"""The row that answers whether all is well, at three in the morning, without scrolling."""

from panels import Panel, Query, Row, share, stat

FIRING = 'ALERTS{alertname=~"Glyphline.*", alertstate="firing"}'
FAULTS = '{CALLS, grpc_code=~"UNKNOWN|INTERNAL|UNAVAILABLE|DATA_LOSS"}'

FIRST = Row(
    "Is all well? Look here first",
    [
        stat(
            "Alerts that fire",
            "Rules of deploy/prometheus/rules that fire now. docs/monitoring.md says for each what to look at and do.",
            f"count({FIRING}) or vector(0)",
            steps=[(1, "red")],
        ),
        stat(
            "Models ready",
            "Share of the models that the servers hold and that can be used. Less than all for minutes: a server has "
            "no worker, or drains.",
            "avg(glyphline_model_ready{MODEL} and on (job, instance, model, version) glyphline_model_info{MODEL})",
            unit="percentunit",
            steps=[(1, "green")],
            falling=True,
        ),
        stat(
            "Calls",
            "Calls a second that ended, of all methods but health checks.",
            "sum(rate(grpc_server_handled_total{CALLS}[$__rate_interval]))",
            unit="reqps",
        ),
        stat(
            "Calls that fail",
            "Share of the calls that fail by the server's fault: UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS. More than "
            "1 % for five minutes fires GlyphlineCallsFail.",
            share(
                f"(sum(rate(grpc_server_handled_total{FAULTS}[$__rate_interval])) or vector(0))",
                "sum(rate(grpc_server_handled_total{CALLS}[$__rate_interval]))",
            ),
            unit="percentunit",
            steps=[(0.001, "yellow"), (0.01, "red")],
        ),
        stat(
            "95 % answered within",
            "Time within which 95 % of the calls that read one image are answered. The objective: 99 % within 0.5 s.",
            "histogram_quantile(0.95, "
            "sum by (le) (rate(grpc_server_handling_seconds_bucket{READS}[$__rate_interval])))",
            unit="s",
            steps=[(0.25, "yellow"), (0.5, "red")],
        ),
        stat(
            "Character error rate, last hour",
            "Wrong characters, of all characters of true texts. No data: no true text came in the last hour.",
            share(
                "sum(rate(glyphline_cer_edits_total{MODEL}[1h]))",
                "sum(rate(glyphline_cer_reference_characters_total{MODEL}[1h]))",
            ),
            unit="percentunit",
            steps=[(0.05, "yellow"), (0.1, "red")],
        ),
        stat(
            "Workers",
            "Worker processes that are ready or at work. 0: every call is refused.",
            "sum(glyphline_workers{SERVER})",
            steps=[(1, "green")],
            falling=True,
        ),
        stat(
            "Images read",
            "Images read a second.",
            'sum(rate(glyphline_images_total{MODEL, outcome="ok"}[$__rate_interval]))',
            unit="ops",
        ),
        stat(
            "Queue in use",
            "Images that wait, of those that may (`--max-queue`). Full: further ones are refused.",
            share("sum(glyphline_queue_depth{SERVER})", "sum(glyphline_queue_limit{SERVER})"),
            unit="percentunit",
            steps=[(0.5, "yellow"), (0.8, "red")],
        ),
        stat(
            "Turned away",
            "Share of what came that was refused for want of room or workers, or ran out of time. All instances of the "
            "job.",
            "max(job:glyphline_turned_away:ratio_rate5m{RECORDED_OF_JOB})",
            unit="percentunit",
            steps=[(0.01, "yellow"), (0.1, "red")],
        ),
        stat(
            "Exact readings, last hour",
            "Readings that equal their true text, of all that have one.",
            share(
                "sum(rate(glyphline_exact_match_total{MODEL}[1h]))", "sum(rate(glyphline_evaluated_total{MODEL}[1h]))"
            ),
            unit="percentunit",
        ),
        stat(
            "Unsure readings, last hour",
            "Readings with a confidence of 0.9 or less. Needs no true texts: a jump says that the images have changed.",
            share(
                'sum(rate(glyphline_confidence_bucket{MODEL, le="0.9"}[1h]))',
                "sum(rate(glyphline_confidence_count{MODEL}[1h]))",
            ),
            unit="percentunit",
        ),
        Panel(
            "table",
            "What fires",
            "Each alert that fires now, and where. Its section in docs/monitoring.md has its name.",
            [Query(FIRING)],
            width=24,
            height=5,
            hidden=["alertstate"],
        ),
    ],
)
