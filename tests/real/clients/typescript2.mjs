// A client on the second generation of the TypeScript SDK; see README.md. The second argument is the folder of the package.
const [given, sdk] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(`${sdk}/dist/index.mjs`);
const { StdioClientTransport } = await import(`${sdk}/dist/stdio.mjs`);

const { stdio, http, calls } = JSON.parse(given);
const transport = stdio
  ? new StdioClientTransport({ command: stdio.command[0], args: stdio.command.slice(1), env: stdio.env, cwd: stdio.cwd })
  : new StreamableHTTPClientTransport(new URL(http.url), {
      requestInit: { headers: { Authorization: `Bearer ${http.token}` } },
    });
const client = new Client({ name: "typescript", version: "2" }, { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
await client.close();
console.log(JSON.stringify({ tools, results }));
