#!/usr/bin/env bash
# Read images from a shell: `examples/clients/read.sh localhost:50051 strip.png other.jpg`.
#
# `buf curl` asks the server which calls it has (reflection), so no .proto file is needed, and turns JSON into messages.
# It comes with `npm ci --prefix examples/clients/node`. The answers are printed as JSON: a tool such as jq takes out what
# is wanted, here `.alternatives[0].text`.
set -uo pipefail
if [ $# -lt 2 ]; then
    echo "usage: read.sh HOST:PORT IMAGE..." >&2
    exit 2
fi
target=$1
shift
buf=$(command -v buf || echo "$(dirname "${BASH_SOURCE[0]}")/node/node_modules/.bin/buf")
method=glyphline.recognition.v1.RecognitionService/Recognize

# Reads one image: bytes are base64 in JSON. With TLS it is https:// and no --http2-prior-knowledge; a token is added by
# --header "authorization: Bearer $TOKEN" and, for reflection, --reflect-header with the same.
recognize() {
    printf '{"image": {"content": "%s"}}' "$(base64 <"$1" | tr -d '\n')" |
        timeout 10 "$buf" curl --protocol grpc --http2-prior-knowledge --data @- "http://$target/$method"
}

failed=0
exec 3>&1 # answers; what buf says of a failure is kept until it is known that no further attempt helps
for image in "$@"; do
    for pause in 0.1 0.2 0.4 0; do
        said=$(recognize "$image" 2>&1 >&3)
        code=$?
        # 1: no server answers. Else it is eight times the number of the gRPC status: full (8), unavailable (14).
        case $code in 1 | 64 | 112) sleep "$pause" ;; *) break ;; esac
    done
    case $code in
    0) continue ;;
    1 | 112 | 124) # 124: no answer in the ten seconds
        echo "$target does not answer: is \`glyphline serve\` running there, and with reflection?" >&2 ;;
    esac
    echo "$image: could not be read${said:+: $said}" >&2
    failed=1
done
exit "$failed"
