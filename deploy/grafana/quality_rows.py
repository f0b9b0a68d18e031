"""The rows about how well is read: from true texts, and without any."""

from panels import Panel, Query, Row, quantiles, share

QUALITY = Row(
    "How well it reads, from true texts",
    [
        Panel(
            "timeseries",
            "Character error rate by version",
            "Over an hour. Compare a new version with the old one. Above 10 % fires GlyphlineCharacterErrorRateHigh.",
            [
                Query(
                    share(
                        "sum by (model, version) (rate(glyphline_cer_edits_total{MODEL}[1h]))",
                        "sum by (model, version) (rate(glyphline_cer_reference_characters_total{MODEL}[1h]))",
                    ),
                    "{{model}} {{version}}",
                )
            ],
            unit="percentunit",
            steps=[(0.1, "red")],
        ),
        Panel(
            "timeseries",
            "Has it drifted?",
            "The last hour of each version beside the last day and week of its model. An hour that is twice the day, "
            "or a day that is one and a half times the week, fires GlyphlineCharacterErrorRateDrift. All instances of "
            "the job.",
            [
                Query("job_model_version:glyphline_cer:ratio_rate1h{RECORDED}", "{{model}} {{version}} hour"),
                Query("job_model:glyphline_cer:ratio_rate1d{RECORDED_OF_MODEL}", "{{model}} day"),
                Query("job_model:glyphline_cer:ratio_rate1w{RECORDED_OF_MODEL}", "{{model}} week"),
            ],
            unit="percentunit",
        ),
        Panel(
            "timeseries",
            "Kinds of errors",
            "Of all characters of true texts. Deletions alone: images are cut or too faint. Insertions alone: there is "
            "more on them than before.",
            [
                Query(
                    "sum by (kind) (rate(glyphline_cer_edits_total{MODEL}[1h]))"
                    " / on () group_left () (sum(rate(glyphline_cer_reference_characters_total{MODEL}[1h])) > 0)",
                    "{{kind}}",
                )
            ],
            unit="percentunit",
            stacked=True,
        ),
        Panel(
            "timeseries",
            "Exact readings",
            "Share of the readings that equal their true text, over an hour.",
            [
                Query(
                    share(
                        "sum by (model, version) (rate(glyphline_exact_match_total{MODEL}[1h]))",
                        "sum by (model, version) (rate(glyphline_evaluated_total{MODEL}[1h]))",
                    ),
                    "{{model}} {{version}}",
                )
            ],
            unit="percentunit",
            maximum=1,
            width=12,
        ),
        Panel(
            "timeseries",
            "Characters that this rests on",
            "Characters of true texts in an hour. Below 500 no alert about errors fires, below 2,000 none about an "
            "hour's drift.",
            [
                Query(
                    "sum by (model, version) (rate(glyphline_cer_reference_characters_total{MODEL}[1h])) * 3600",
                    "{{model}} {{version}}",
                )
            ],
            width=12,
        ),
    ],
)

CHANGE = Row(
    "Have the images changed? Needs no true texts",
    [
        Panel(
            "timeseries",
            "Confidence",
            "Half, and a tenth, of the readings are at most so sure.",
            quantiles("glyphline_confidence_bucket{MODEL}", (0.5, 0.1), by="model", legend="{{model}}", window="1h"),
            unit="percentunit",
            maximum=1,
        ),
        Panel(
            "heatmap",
            "Confidences",
            "How many readings had which confidence. A second band lower down is another kind of image.",
            [Query("sum by (le) (increase(glyphline_confidence_bucket{MODEL}[$__rate_interval]))", "{{le}}")],
        ),
        Panel(
            "timeseries",
            "Unsure readings",
            "Share with a confidence of 0.9 or less: the last hour beside the last day. Twice the day and five points "
            "more fires GlyphlineConfidenceDrift. All instances of the job.",
            [
                Query(
                    "job_model_version:glyphline_unsure_readings:ratio_rate1h{RECORDED}", "{{model}} {{version}} hour"
                ),
                Query("job_model:glyphline_unsure_readings:ratio_rate1d{RECORDED_OF_MODEL}", "{{model}} day"),
            ],
            unit="percentunit",
        ),
        Panel(
            "timeseries",
            "Readings without text",
            "Share of the readings. A jump: empty strips, or a camera that sees nothing.",
            [
                Query(
                    share(
                        "sum by (model) (rate(glyphline_empty_total{MODEL}[1h]))",
                        "sum by (model) (rate(glyphline_confidence_count{MODEL}[1h]))",
                    ),
                    "{{model}}",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "timeseries",
            "Readings that were cut",
            "Share of the readings that came to the greatest length.",
            [
                Query(
                    share(
                        "sum by (model) (rate(glyphline_truncated_total{MODEL}[1h]))",
                        "sum by (model) (rate(glyphline_confidence_count{MODEL}[1h]))",
                    ),
                    "{{model}}",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "timeseries",
            "Width of strips",
            "In columns of the model's form: half, and 95 %, of the strips are at most so wide.",
            quantiles("glyphline_columns_bucket{MODEL}", (0.5, 0.95), by="model", legend="{{model}}", window="1h"),
        ),
    ],
)
