// The whole surface of `cordon mcp` through the clients of the official SDK, which check every message against the
// specification's schemas and every structuredContent against the outputSchema of its tool: the first line of the SDK for
// versions that begin with initialize, and the second for the one that does not.
//
//     node surface.mjs ERA stdio CORDON            starts `CORDON mcp`; ERA: legacy or modern
//     node surface.mjs ERA http URL TOKEN          a server that listens
//
// build/npm (scripts/npm-tools) is $CORDON_NPM; $CORDON_WORKSPACE is where the commands run. Each check prints its name;
// the first that fails ends it all. tests/e2e/test_mcp_sdk.py calls it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';

const require = createRequire(`${process.env.CORDON_NPM}/`);
const [era, kind, where, token] = process.argv.slice(2);
const isModern = era === 'modern';
const sdk = isModern
    ? { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') }
    : { ...require('@modelcontextprotocol/sdk/client/index.js'), ...require('@modelcontextprotocol/sdk/client/stdio.js'),
        ...require('@modelcontextprotocol/sdk/client/streamableHttp.js'), ...require('@modelcontextprotocol/sdk/types.js') };
const NO_RESOURCE = isModern ? -32602 : -32002;
const workspace = process.env.CORDON_WORKSPACE;
const TOOLS = ['apply_patch', 'exec_command', 'explain_permissions', 'list_sessions', 'read_screen', 'terminate_session',
               'wait_for', 'write_stdin'];

// --- a connection, and what it heard ---

class Connection {
    constructor(capabilities = {}) {
        this.heard = []; // notifications, oldest first
        this.waiting = [];
        this.subscriptions = new Map();
        this.client = new sdk.Client({ name: 'surface', version: '1' },
                                     { capabilities, versionNegotiation: { mode: isModern ? { pin: '2026-07-28' } : 'legacy' } });
        for (const name of ['LoggingMessage', 'ResourceUpdated', 'ResourceListChanged'])
            this.client.setNotificationHandler(isModern ? METHODS[name] : sdk[`${name}NotificationSchema`], (message) => this.hears(message));
        this.client.onerror = (error) => { this.error = error; };
    }

    async open() {
        this.transport = kind === 'stdio'
            ? new sdk.StdioClientTransport({ command: where, args: ['mcp', '--watch', 'ask'], env: process.env, cwd: workspace, stderr: 'inherit' })
            : new sdk.StreamableHTTPClientTransport(new URL(where), {
                requestInit: { headers: { Authorization: `Bearer ${token}` } },
                fetch: (url, init) => this.fetch(url, init),
            });
        await this.client.connect(this.transport);
        await this.client.listTools(); // from here on structuredContent is checked
        if (isModern)
            await this.client.listen({ resourcesListChanged: true });
        return this;
    }

    // With `breaks`, the next stream of events ends behind what comes first.
    async fetch(url, init) {
        const response = await fetch(url, init);
        if (!this.breaks || init.method !== 'POST' || response.headers.get('content-type') !== 'text/event-stream')
            return response;
        this.breaks = false;
        const reader = response.body.getReader();
        const { value } = await reader.read();
        await reader.cancel();
        const body = new ReadableStream({ start: (stream) => { stream.enqueue(value); stream.close(); } });
        return new Response(body, { status: response.status, headers: response.headers });
    }

    hears(message) {
        this.heard.push(message);
        this.waiting = this.waiting.filter((look) => !look());
    }

    // The next notification of this method with such params.
    next(method, wanted = () => true) {
        return new Promise((resolve) => {
            const look = () => {
                const at = this.heard.findIndex((one) => one.method === method && wanted(one.params));
                if (at < 0)
                    return false;
                resolve(this.heard.splice(at, 1)[0].params);
                return true;
            };
            if (!look())
                this.waiting.push(look);
        });
    }

    nextUpdate(uri) {
        return this.next(METHODS.ResourceUpdated, (params) => params.uri === uri);
    }

    async subscribe(uri) {
        if (isModern)
            this.subscriptions.set(uri, await this.client.listen({ resourceSubscriptions: [uri] }));
        else
            await this.client.subscribeResource({ uri });
    }

    async unsubscribe(uri) {
        if (isModern)
            await this.subscriptions.get(uri).close();
        else
            await this.client.unsubscribeResource({ uri });
    }

    async call(name, args = {}, options) {
        const result = await this.client.callTool({ name, arguments: args }, ...(isModern ? [] : [undefined]), options);
        result.words = result.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n');
        return result;
    }

    // A call that has to work: its structuredContent.
    async works(name, args, options) {
        const result = await this.call(name, args, options);
        assert(!result.isError, result.words);
        return result.structuredContent;
    }

    // A call that has to be refused: its words, which have to say what to do.
    async fails(name, args) {
        const result = await this.call(name, args);
        assert(result.isError, JSON.stringify(result));
        return result.words;
    }

    async read(uri) {
        const { contents } = await this.client.readResource({ uri });
        assert.equal(contents.length, 1);
        assert.equal(contents[0].uri, uri);
        return contents[0].text;
    }

    close() {
        return this.client.close();
    }
}

const METHODS = {
    LoggingMessage: 'notifications/message',
    ResourceUpdated: 'notifications/resources/updated',
    ResourceListChanged: 'notifications/resources/list_changed',
};
const uriOf = (id, part) => `cordon://session/${id}/${part}`;

// --- the checks, in their order, on one connection ---

const checks = {
    async 'who is there'(mcp) {
        assert.equal(mcp.client.getServerVersion().name, 'cordon');
        const capabilities = mcp.client.getServerCapabilities();
        assert(capabilities.tools && capabilities.logging && capabilities.completions);
        assert.deepEqual(capabilities.resources, { subscribe: true, listChanged: true });
        assert.equal(capabilities.prompts, undefined);
        assert(mcp.client.getInstructions().length <= 1200);
        if (isModern)
            assert.equal(mcp.client.getNegotiatedProtocolVersion(), '2026-07-28');
        else
            await mcp.client.ping();
    },

    async 'tools say what they do'(mcp) {
        const { tools } = await mcp.client.listTools();
        assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
        for (const tool of tools) {
            assert(tool.title && tool.description && tool.outputSchema, tool.name);
            for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])
                assert.equal(typeof tool.annotations[hint], 'boolean', `${tool.name} ${hint}`);
            for (const [name, argument] of Object.entries(tool.inputSchema.properties ?? {}))
                assert(argument.description, `${tool.name} ${name}`);
        }
    },

    async 'a command that ends'(mcp) {
        const result = await mcp.call('exec_command', { cmd: 'echo out; echo err >&2; exit 3' });
        assert(!result.isError);
        assert.match(result.words, /Process exited with code 3[^]*Output:\n(out\nerr\n|err\nout\n)/);
        const told = result.structuredContent;
        assert.deepEqual([told.exit_code, told.session_id, told.reason], [3, null, 'ended']);
        assert.deepEqual(told.output.split('\n').sort(), ['', 'err', 'out']);
    },

    async 'arguments of exec_command'(mcp) {
        const told = await mcp.works('exec_command', {
            cmd: 'pwd; echo $A; cat; echo $0', workdir: `${workspace}/sub`, env: { A: 'b' }, stdin: 'typed\n', login: false,
            shell: '/bin/sh', max_output_tokens: 1000, yield_time_ms: 20000,
        });
        assert.equal(told.output, `${workspace}/sub\nb\ntyped\n/bin/sh\n`);
    },

    async 'output over the budget'(mcp) {
        const told = await mcp.works('exec_command', { cmd: 'seq 1 20000', max_output_tokens: 100 });
        assert(told.output.length < 1200 && /truncated/.test(told.output), told.output);
        assert(told.original_token_count > 20000);
    },

    async 'wrong arguments'(mcp) {
        assert.match(await mcp.fails('exec_command', {}), /cmd/);
        assert.match(await mcp.fails('exec_command', { cmd: 7 }), /cmd.*string/);
        assert.match(await mcp.fails('exec_command', { cmd: 'true', yield_ms: 5 }), /yield_ms[^]*yield_time_ms/);
        assert.match(await mcp.fails('exec_command', { cmd: 'true', workdir: '/no/such/folder' }), /\/no\/such\/folder/);
        assert.equal(await mcp.fails('write_stdin', { session_id: 99, chars: 'x' }), 'write_stdin failed: there is no session 99');
        await assert.rejects(mcp.client.callTool({ name: 'no_such_tool', arguments: {} }), { code: -32602 });
        if (!isModern)
            await assert.rejects(mcp.client.request({ method: 'no/such/method' }, sdk.EmptyResultSchema), { code: -32601 });
    },

    async 'a denial names the remedy'(mcp) {
        const result = await mcp.call('exec_command', { cmd: `echo x > ${workspace}/../outside/new` });
        assert(!result.isError); // the command ran; what it tried is told
        const [denial] = result.structuredContent.denials;
        assert.equal(denial.operation, 'write');
        assert(denial.path.endsWith('/outside/new'));
        assert(denial.remedy.length > 10);
        assert.match(result.words, /Denied: .*outside/);
        assert(result.words.includes(denial.remedy), result.words);
    },

    async 'a session'(mcp) {
        const { session_id: id, reason } = await mcp.works('exec_command', {
            cmd: 'while read x; do echo got $x; done; echo bye', tty: true, until: { quiet_ms: 300 },
            yield_time_ms: 20000,
        });
        assert.equal(reason, 'met');
        await mcp.next(METHODS.ResourceListChanged);
        assert.match((await mcp.works('write_stdin', { session_id: id, chars: 'one\n', until: { text: 'got one' } })).output, /got one/);
        const { sessions } = await mcp.works('list_sessions');
        assert.deepEqual(sessions.map((one) => [one.session_id, one.tty, one.workdir]), [[id, true, workspace]]);
        const screen = await mcp.works('read_screen', { session_id: id });
        assert.deepEqual(screen.lines, ['one', 'got one']);
        const end = await mcp.works('write_stdin', { session_id: id, chars: '\x04', yield_time_ms: 20000 });
        assert.deepEqual([end.exit_code, end.session_id], [0, null]);
        await mcp.next(METHODS.ResourceListChanged);
        assert.deepEqual((await mcp.works('list_sessions')).sessions, []);
    },

    async 'waiting for a text, and the end of a session'(mcp) {
        const { session_id: id } = await mcp.works('exec_command', {
            cmd: 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo now; sleep 600', yield_time_ms: 250,
        });
        const waiting = mcp.works('wait_for', { session_id: id, text: 'now' });
        await mcp.works('exec_command', { cmd: 'touch go' });
        const met = await waiting;
        assert.equal(met.reason, 'met');
        const end = await mcp.works('terminate_session', { session_id: id });
        assert.equal(end.session_id, null);
        assert.equal(end.signal, 'SIGTERM');
        const after = await mcp.works('wait_for', { session_id: id, quiet_ms: 1 }); // how it ended is told again
        assert.deepEqual([after.reason, after.signal, after.session_id], ['ended', 'SIGTERM', null]);
        assert.match(await mcp.fails('write_stdin', { session_id: id, chars: 'x' }), new RegExp(id));
    },

    async 'a patch'(mcp) {
        const patch = '*** Begin Patch\n*** Add File: made.txt\n+one\n*** End Patch\n';
        assert.deepEqual((await mcp.works('apply_patch', { patch, dry_run: true })).applied, false);
        const told = await mcp.works('apply_patch', { patch });
        assert.deepEqual([told.applied, told.files.map((file) => file.path)], [true, ['made.txt']]);
        assert.equal((await mcp.works('exec_command', { cmd: 'cat made.txt' })).output, 'one\n');
        assert.match(await mcp.fails('apply_patch', { patch: '*** Begin Patch\n*** Update File: none\n@@\n-a\n+b\n*** End Patch\n' }), /none/);
    },

    async 'what may be done'(mcp) {
        const all = await mcp.works('explain_permissions');
        assert.equal(all.workspace, workspace);
        assert(all.writable.includes(workspace), JSON.stringify(all.writable));
        const asked = async (args) => (await mcp.works('explain_permissions', args)).verdict;
        assert.equal(await asked({ path: '/etc/passwd' }), 'read');
        assert.equal(await asked({ path: 'sub', access: 'write' }), 'write');
        assert.equal(await asked({ command: 'git push' }), 'runs');
        assert.equal(await asked({ host: 'example.org' }), 'deny');
        assert.match(await mcp.fails('explain_permissions', { path: '/etc', host: 'example.org' }), /one of/);
    },

    async 'progress'(mcp) {
        const told = [];
        let hears;
        const heard = new Promise((resolve) => { hears = resolve; });
        const call = mcp.works('exec_command', {
            cmd: 'while [ ! -e enough ]; do echo line $((i += 1)); sleep 0.3; done', yield_time_ms: 30000,
        }, {
            onprogress: (progress) => {
                told.push(progress);
                if (told.filter(({ message }) => /^line \d+$/.test(message)).length === 2)
                    hears();
            },
        });
        await heard;
        await mcp.works('exec_command', { cmd: 'touch enough' });
        assert.equal((await call).reason, 'ended');
        for (const [at, one] of told.entries())
            assert(at === 0 || one.progress > told[at - 1].progress);
    },

    async 'cancelling'(mcp) {
        const stop = new AbortController();
        const call = mcp.call('exec_command', { cmd: 'trap "echo interrupted; exit 9" INT; while :; do sleep 0.05; done', yield_time_ms: 30000 },
                              { signal: stop.signal });
        while ((await mcp.works('list_sessions')).sessions.length === 0)
            await pause(20);
        stop.abort('enough');
        await assert.rejects(call);
        while ((await mcp.works('list_sessions')).sessions.length > 0) // the default interrupts
            await pause(20);
    },

    async 'going on after a break'(mcp) {
        if (kind !== 'http' || isModern)
            return;
        mcp.breaks = true;
        const told = await mcp.works('exec_command', { cmd: 'sleep 0.3; echo heard' });
        assert.equal(told.output, 'heard\n');
        assert.equal(mcp.breaks, false);
    },

    async 'logging'(mcp) {
        if (isModern)
            return; // each request says its level
        await mcp.client.setLoggingLevel('debug');
        await mcp.client.setLoggingLevel('emergency');
        await assert.rejects(mcp.client.request({ method: 'logging/setLevel', params: { level: 'loud' } }, sdk.EmptyResultSchema), { code: -32602 });
        await mcp.client.setLoggingLevel('warning');
    },

    async 'sessions as resources'(mcp) {
        const { session_id: id } = await mcp.works('exec_command', { cmd: 'echo a first line; exec cat', tty: true, until: { text: 'line' } });
        const { resources } = await mcp.client.listResources();
        const uris = resources.map((one) => one.uri);
        for (const uri of ['cordon://permissions', 'cordon://sessions', uriOf(id, 'output'), uriOf(id, 'screen'), uriOf(id, 'info')])
            assert(uris.includes(uri), uri);
        const { resourceTemplates } = await mcp.client.listResourceTemplates();
        assert.deepEqual(resourceTemplates.map((one) => one.uriTemplate).sort(), ['info', 'output', 'screen'].map((part) => uriOf('{id}', part)));
        assert.equal(await mcp.read(uriOf(id, 'output')), 'a first line\r\n');
        assert.equal(await mcp.read(uriOf(id, 'screen')), 'a first line\n');
        const info = JSON.parse(await mcp.read(uriOf(id, 'info')));
        assert.deepEqual([info.session_id, info.running, info.exit_code, info.workdir], [id, true, null, workspace]);
        assert(JSON.parse(await mcp.read('cordon://permissions')).entries);
        assert.deepEqual(JSON.parse(await mcp.read('cordon://sessions')), await mcp.works('list_sessions'));
        for (const uri of [uriOf(1, 'output'), uriOf(id, 'nothing'), 'cordon://session/../x/output', 'file:///etc/passwd'])
            await assert.rejects(mcp.read(uri), { code: NO_RESOURCE });

        // Looking takes nothing: the model's next call has what the resource has shown.
        const typed = mcp.nextUpdate(uriOf(id, 'output'));
        await mcp.subscribe(uriOf(id, 'output'));
        await mcp.works('write_stdin', { session_id: id, chars: 'typed\n', until: { text: 'typed\r\ntyped' } });
        await typed;
        assert.equal(await mcp.read(uriOf(id, 'output')), 'a first line\r\ntyped\r\ntyped\r\n');

        const complete = (value, name = 'id', uri = uriOf('{id}', 'output')) =>
            mcp.client.complete({ ref: { type: 'ref/resource', uri }, argument: { name, value } });
        assert.deepEqual((await complete(String(id)[0])).completion, { values: [String(id)], total: 1, hasMore: false });
        assert.deepEqual((await complete('x')).completion.values, []);
        assert.deepEqual((await complete('', 'other')).completion.values, []);

        const ended = mcp.nextUpdate(uriOf(id, 'output'));
        await mcp.works('terminate_session', { session_id: id });
        await ended;
        await mcp.unsubscribe(uriOf(id, 'output'));
        assert.equal(JSON.parse(await mcp.read(uriOf(id, 'info'))).running, false);
        assert(!(await mcp.client.listResources()).resources.some((one) => one.uri === uriOf(id, 'output')));
    },

    async 'questions'(mcp) {
        const touch = { cmd: `echo x > ${workspace}/../outside/asked && echo written` };
        const asked = [];
        const replies = [{ action: 'accept', content: { decision: 'denied' } }, { action: 'decline' }, { action: 'cancel' },
                         { action: 'accept', content: { decision: 'approved' } }];
        const refused = await mcp.works('exec_command', touch); // this one cannot be asked
        assert(!refused.output.includes('written') && refused.denials.length);
        const other = new Connection({ elicitation: { form: {} } });
        other.client.setRequestHandler(isModern ? 'elicitation/create' : sdk.ElicitRequestSchema, ({ params }) => {
            asked.push(params);
            return replies[asked.length - 1];
        });
        await other.open();
        for (let i = 0; i < 3; i++)
            assert(!(await other.works('exec_command', touch)).output.includes('written'));
        assert.equal((await other.works('exec_command', touch)).output, 'written\n');
        assert.equal(asked.length, replies.length);
        for (const { message, requestedSchema } of asked) {
            assert.match(message, /outside\/asked/);
            assert(requestedSchema.properties.decision && requestedSchema.required.includes('decision'));
        }
        await other.close();
    },

    async 'five updates a second at most'(mcp) {
        const { session_id: id } = await mcp.works('exec_command', { cmd: 'while :; do echo x; sleep 0.01; done', yield_time_ms: 250 });
        const uri = uriOf(id, 'output');
        const begun = performance.now();
        await mcp.subscribe(uri);
        for (let i = 0; i < 6; i++) // the first may come at once
            await mcp.nextUpdate(uri);
        assert(performance.now() - begun >= 950); // timers of Node.js may be a little early
        await mcp.unsubscribe(uri);
        await mcp.works('terminate_session', { session_id: id, grace_ms: 0 });
    },
};

const mcp = await new Connection().open();
for (const [name, check] of Object.entries(checks)) {
    console.log(name);
    await check(mcp);
}
assert.equal(mcp.error, undefined);
await mcp.close();
