// Read images with Node: `node examples/clients/node/read.js localhost:50051 strip.png other.jpg`.
//
// First `npm ci --prefix examples/clients/node`. The calls are those of protos/glyphline/recognition/v1/recognition.proto.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const folder = fileURLToPath(new URL(".", import.meta.url));
const definition = loadSync("glyphline/recognition/v1/recognition.proto", {
  // This folder has google/rpc/status.proto, which is imported there and does not come with proto-loader.
  includeDirs: [`${folder}../../../protos`, folder],
  keepCase: true, // names as they are in the .proto
  defaults: true, // fields that are not set have their default, as an empty text
});
const api = grpc.loadPackageDefinition(definition).glyphline.recognition.v1;

// gRPC itself tries again what may succeed later: a server that restarts, and one that is full.
const retryPolicy = {
  maxAttempts: 5,
  initialBackoff: "0.1s",
  maxBackoff: "5s",
  backoffMultiplier: 2,
  retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
};
const service = { service: "glyphline.recognition.v1.RecognitionService" };
const options = { "grpc.service_config": JSON.stringify({ methodConfig: [{ name: [service], retryPolicy }] }) };

const [target, ...paths] = process.argv.slice(2);
if (paths.length === 0) {
  console.error("usage: read.js HOST:PORT IMAGE...");
  process.exit(2);
}

const client = new api.RecognitionService(target, grpc.credentials.createInsecure(), options);
const recognize = promisify(client.Recognize).bind(client);
for (const path of paths) {
  try {
    const request = { image: { content: await readFile(path) } };
    const deadline = Date.now() + 10_000; // of the call, further attempts included
    const { alternatives } = await recognize(request, new grpc.Metadata(), { deadline });
    console.log([path, alternatives[0].text, alternatives[0].confidence.toFixed(3)].join("\t"));
  } catch (error) {
    console.error(`${path}: ${error.message}`);
    process.exitCode = 1;
  }
}
client.close();
