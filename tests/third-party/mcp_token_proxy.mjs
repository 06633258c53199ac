// Puts the bearer token of `haft mcp serve --http` into every request, for clients that cannot send one.
// usage: mcp_token_proxy.mjs PORT TOKEN; prints its own URL
import http from "node:http";

const [port, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const own = server.address().port;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  // Its own name stands for the server's; every other is passed on as it is.
  for (const name of ["host", "origin"]) {
    headers[name] = headers[name]?.replace(new RegExp(`(127\\.0\\.0\\.1|localhost):${own}$`), `127.0.0.1:${port}`);
    if (headers[name] === undefined) delete headers[name];
  }
  const options = { host: "127.0.0.1", port, path: request.url, method: request.method, headers };
  const passed = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
