// A receiver of webhooks, with the reference library of Standard Webhooks. It writes its port,
// reads its secret from standard input, and writes a line for each message: its type if the
// library accepts it, and does not accept it altered.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

let webhook;
const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts).toString();
    try {
      const { type } = webhook.verify(body, request.headers);
      let altered = "accepted";
      try {
        webhook.verify(body.replace("{", "{ "), request.headers);
      } catch {
        altered = "refused";
      }
      console.log(`${type} altered=${altered}`);
      response.writeHead(204).end();
    } catch (error) {
      console.log(`refused: ${error.message}`);
      response.writeHead(400).end();
    }
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
createInterface({ input: process.stdin })
  .on("line", (secret) => {
    webhook = new Webhook(secret);
    console.log("ready");
  })
  .on("close", () => process.exit(0));
