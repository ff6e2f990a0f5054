// A client on the TypeScript SDK; see README.md. The second argument is the folder of the SDK.
const [given, sdk] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/dist/esm/client/streamableHttp.js`);

const { stdio, http, calls } = JSON.parse(given);
const transport = stdio
  ? new StdioClientTransport({ command: stdio.command[0], args: stdio.command.slice(1), env: stdio.env, cwd: stdio.cwd })
  : new StreamableHTTPClientTransport(new URL(http.url), {
      requestInit: { headers: { Authorization: `Bearer ${http.token}` } },
    });
const client = new Client({ name: "typescript", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
await client.close();
console.log(JSON.stringify({ tools, results }));
