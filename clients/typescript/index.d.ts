/**
 * Commands in a sandbox: a client of Cordon.
 *
 * ```js
 * import { spawn } from 'cordon';
 *
 * const client = await spawn(); // a server of its own; connect(URL): another
 * const result = await client.run('make test', { cwd: '/work', timeoutMs: 600000 });
 * console.log(result.exitCode, result.text, result.denials);
 *
 * const command = await client.start(['npm', 'run', 'dev'], { cwd: '/work' });
 * for await (const line of command.lines()) console.log(line);
 * await client.close();
 * ```
 *
 * Nothing has to be said to be safe: a command may write its workspace and temporary folders of its own, and
 * has no network. `sandbox` says it otherwise. Plain ECMAScript modules with types (import them in a file `.mjs`, or
 * with `"type": "module"`), without dependencies, for Node 18 or newer; with Node 24 or TypeScript, `await using` ends clients, commands, sessions and handles.
 *
 * Installed by the npm package (`npm install ./cordon-*.tgz`), which has the program `cordon` in it, too. The program
 * cannot be changed by its commands, wherever it lies; but what else runs outside of the sandbox, such as your own
 * program, this client and `node_modules/.bin`, has to lie where they cannot write, and so not in their workspace.
 */
/// <reference types="node" />

// --- Connecting ---

/** Of connect() and spawn(). */
export interface ClientOptions {
  /** What calls have that say none. */
  sandbox?: AnySandbox;
  /** Answers what the server asks: then what a sandbox refuses waits for the answer, if the sandbox says no
   * other `watch`. */
  onQuestion?: Asked;
  /** How long the server may take to answer at first. Default 30000. */
  timeoutMs?: number;
  /** For the server's logs. */
  name?: string;
}

/** Of connect(). */
export interface ConnectOptions extends ClientOptions {
  /** Is sent. Without one, a server at a loopback address has to know the user's own token, if there is
   * one, which is shown to be known and never sent; '' is for a server that does not. */
  token?: string;
  /** How long a lost connection is made anew; 0: not at all. Default 45000. */
  reconnectForMs?: number;
  /** The session of an earlier client. */
  resume?: string;
}

/** Of spawn(). */
export interface SpawnOptions extends ClientOptions {
  /** What serves on its standard input and output. Default: `cordon serve --listen stdio`, with the program in this
   * package, or the first in an absolute folder of the PATH. */
  argv?: string[];
}

/** Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH. A lost connection is made anew: the session goes
 * on, and the output of the time in between is fetched, so that events come once and in order. Calls that were
 * on their way reject with Disconnected; Process.write() is repeated and still written once. The server keeps
 * a session for 80 s: `resume` and Client.takeUp() go on with it in another program. */
export function connect(url: string, options?: ConnectOptions): Promise<Client>;

/** Starts a server of our own, which ends with the client. */
export function spawn(options?: SpawnOptions): Promise<Client>;

/** Client.run() of a server that is started for this one command. */
export function run(argv: string | string[], options?: RunOptions & { onQuestion?: Asked }): Promise<Result>;

/** A connection, made by connect() or spawn(). */
export class Client implements AsyncDisposable {
  /** For ConnectOptions.resume. */
  readonly sessionId: string;
  /** Of the server's environment, as environment/info tells. */
  readonly info: Record<string, unknown>;
  readonly files: Files;
  readonly sessions: Sessions;
  readonly layers: Layers;
  sandbox: AnySandbox | undefined;
  onQuestion: Asked | undefined;
  /** By method: they answer other requests of the server. */
  handlers: Handlers;
  /** Notifications that belong to no process of this client. */
  onEvent: (method: string, params: Record<string, unknown>) => void;
  private constructor();
  /** Runs a command to its end: a program with its arguments, or a text for `sh -c`. */
  run(argv: string | string[], options?: RunOptions): Promise<Result>;
  /** Starts a command. */
  start(argv: string | string[], options?: StartOptions): Promise<Process>;
  /** Applies a patch in the apply_patch grammar below `cwd`, all of it or nothing. Of `task`, "check" and "diff"
   * change nothing. */
  patch(patch: string, options?: { cwd?: string; sandbox?: AnySandbox; layer?: AnyLayer;
    task?: 'apply' | 'check' | 'diff' }): Promise<Patched>;
  /** What a sandbox lets a command do, and who decided it, as `cordon explain --json` says it: of one `path`, of one
   * `host` (HOST or HOST:PORT), of a command (`argv`, which is not run), or of everything. */
  explain(options?: { cwd?: string; sandbox?: AnySandbox; path?: string; access?: 'read' | 'write'; host?: string;
    argv?: string[] }): Promise<Record<string, any>>;
  /** Any method of the protocol (docs/protocol.md). Without an answer in time, or when `signal` says so, nobody
   * knows whether it was carried out; but calls of a session are taken back, and lose no output. */
  call(method: string, params?: Record<string, unknown>, options?: CallOptions): Promise<any>;
  /** A process of this session that another client started (ConnectOptions.resume). */
  takeUp(processId: string): Promise<Process>;
  /** What a process did that was started with `trace`, event by event until it is closed. Any number of
   * readers. What was not kept until it was read is one "lost". */
  timeline(processId: string, after?: number): AsyncGenerator<TimelineEvent, void, undefined>;
  /** Ends the connection. What runs goes on for as long as the server keeps the session; a server of our own
   * ends with all that it runs. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Of calls that may be given up. */
export interface CallOptions {
  /** The call rejects with its reason. */
  signal?: AbortSignal;
  /** The call rejects with TimedOut. */
  timeoutMs?: number;
}

/** Answers of a program to requests of the server, besides `onQuestion`. */
export interface Handlers {
  'approval/request'?: (request: ApprovalRequest) => Approval | Promise<Approval>;
  [method: string]: ((params: any) => unknown) | undefined;
}

/** What Client.patch() did. */
export interface Patched {
  applied: boolean;
  files: { path: string; change: string; from: string | null; lines_added: number; lines_removed: number }[];
  /** With `task` "diff". */
  diff: string | null;
  /** Why nothing was changed. */
  error: string | null;
}

// --- Commands ---

/** Of Client.start(). */
export interface StartOptions {
  /** By default the server's own folder, from which it counts. */
  cwd?: string;
  /** The whole environment; missing: the server's without secrets. */
  env?: Record<string, string>;
  /** Laid over it. */
  extraEnv?: Record<string, string>;
  /** Missing: that of the client, else what the configuration of the server's user says, else workspace-write. */
  sandbox?: AnySandbox;
  /** Takes what it writes, in place of the real files. */
  layer?: AnyLayer;
  tty?: boolean;
  /** write() is wanted. */
  stdin?: boolean;
  /** Rows and columns of the terminal. */
  size?: [number, number];
  processId?: string;
  arg0?: string;
  /** What timeline() tells. */
  trace?: Trace[];
  maxMemoryBytes?: number;
  /** Of each process. */
  maxCpuTimeMs?: number;
  /** Processes and threads. */
  maxPids?: number;
  /** Of a file that it writes. */
  maxFileBytes?: number;
  maxFiles?: number;
  maxAddressSpaceBytes?: number;
  /** So much of the output that no longer fits into the server's memory is kept on disk. */
  spoolBytes?: number;
  /** These as docs/protocol.md says for process/start. An option that is none is a TypeError. */
  envPolicy?: Record<string, unknown>;
  metadata?: { threadId?: string; toolCallId?: string };
  enforceManagedNetwork?: boolean;
  managedNetwork?: Record<string, unknown>;
  networkProxy?: Record<string, unknown>;
}

/** Of Client.run(). */
export interface RunOptions extends StartOptions, CommunicateOptions {
  /** All that it gets to read. */
  input?: string | Uint8Array;
  /** CommandFailed if it does not end with 0. */
  check?: boolean;
}

/** Of Process.communicate(). */
export interface CommunicateOptions {
  /** Of each stream the first bytes are kept. Default 16 MiB. */
  maxOutput?: number;
  /** Ends the command, and the call rejects with its reason. */
  signal?: AbortSignal;
  /** Then the command is ended (SIGTERM, 2 seconds, SIGKILL), and the call rejects with TimedOut. */
  timeoutMs?: number;
}

/** A running command, made by Client.start(). `await using` ends it at the end of the block, with all that it
 * started; `for await` gives its events. */
export class Process implements AsyncIterable<ProcessEvent>, AsyncDisposable {
  readonly id: string;
  readonly sandboxType: string;
  /** For people: limits that do not hold as they are meant. */
  readonly warnings: string[];
  readonly exit: Exited | null;
  readonly isClosed: boolean;
  private constructor();
  /** Everything that happens, in order, until it is closed. For one reader. */
  events(): AsyncGenerator<ProcessEvent, void, undefined>;
  [Symbol.asyncIterator](): AsyncGenerator<ProcessEvent, void, undefined>;
  /** The bytes of one stream or of all, as they come; for one reader, as events(). Readable.from() makes a stream
   * of it. */
  output(stream?: Stream): AsyncGenerator<Buffer, void, undefined>;
  /** Whole lines of one stream or of all, without their ends; what is no UTF-8 is replaced, and a line of more than
   * 1 MiB comes in pieces. For one reader; a loop that was left may be begun again, with the next line. */
  lines(stream?: Stream): AsyncGenerator<string, void, undefined>;
  /** Client.timeline() of this process. */
  timeline(after?: number): AsyncGenerator<TimelineEvent, void, undefined>;
  /** Writes `data` and ends the input, and collects output until it is closed. */
  communicate(data?: string | Uint8Array, options?: CommunicateOptions): Promise<Result>;
  /** How the command ended. Its output may go on, if it left something behind. */
  wait(): Promise<Exited>;
  /** Sends input; InputClosed when it takes none. Written once, also when the connection is lost meanwhile. */
  write(data: string | Uint8Array): Promise<void>;
  /** false: it had no input, or it was closed before. */
  closeStdin(): Promise<boolean>;
  /** SIGINT, as by Ctrl-C. */
  interrupt(): Promise<void>;
  /** Ends it with all that it started; after SIGTERM and `graceMs` if there are any. Whether it was still
   * running. */
  terminate(graceMs?: number): Promise<boolean>;
  resize(rows: number, columns: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What Client.run() and Process.communicate() give. */
export class Result {
  private constructor();
  /** Of a terminal: everything. */
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly exit: Exited;
  /** Bytes that are in neither, because there were too many. */
  readonly lost: number;
  /** Of the command; 128 + n for signal n. */
  readonly exitCode: number;
  /** What was refused to it. */
  readonly denials: Denial[];
  /** `stdout` as text; what is no UTF-8 is replaced. */
  readonly text: string;
  /** Itself, or CommandFailed when the command did not end with 0. */
  check(): this;
}

/** "pty" with a terminal. */
export type Stream = 'stdout' | 'stderr' | 'pty';

/** What happens to a command. */
export type ProcessEvent = Output | Gap | Exited | Closed;

/** Bytes that were written. */
export interface Output {
  type: 'output';
  stream: Stream;
  data: Buffer;
  /** Of its first byte in all output; missing: the server does not tell. */
  offset?: number;
}

/** Output that is not retained any more: its reader was away for too long, or too slow (32 MiB). */
export interface Gap {
  type: 'gap';
  bytes: number;
}

/** How a command ended. */
export interface Exited {
  type: 'exited';
  /** 128 + n for signal n. */
  exitCode: number;
  /** It failed, and the sandbox refused it something. */
  sandboxDenied: boolean;
  /** "SIGKILL" */
  signal: string | null;
  denials: Denial[];
}

/** The last event: nothing holds the output open any more. */
export interface Closed {
  type: 'closed';
}

/** Something that was refused, as in process/exited. */
export interface Denial {
  operation: 'read' | 'write' | 'execute' | 'connect' | 'bind' | 'signal' | 'other';
  evidence: 'fact' | 'heuristic';
  source: 'sandbox' | 'host' | 'unknown';
  path: string | null;
  /** Of a rename or link, the second name. */
  path2: string | null;
  host: string | null;
  port: number | null;
  errno: string | null;
  decided_by: string | null;
  /** Of a host. */
  reason?: string | null;
  /** What would allow it, by the options of `cordon run`: --allow-host is `allowHosts` of a Sandbox. */
  remedy: string;
  program: string | null;
  pid: number | null;
  call: string | null;
  creates: boolean;
  count: number;
  /** `count` of them below `path`, which are not told one by one. */
  below: boolean;
  /** Tried in passing, and not why the command failed. */
  aside: boolean;
}

/** What a timeline tells. */
export type Trace = 'files' | 'network' | 'exec';

/** Something that a process did, or was refused: docs/timeline.md. */
export interface TimelineEvent {
  event: 'done' | 'denied' | 'asked' | 'answered' | 'exec' | 'exec-end' | 'lost';
  /** Missing where events were lost because they were not read in time. */
  seq?: number;
  /** Since the start of the command. */
  time_ns?: number;
  count?: number;
  pid?: number | null;
  program?: string | null;
  /** The exec that did it. */
  exec?: number | null;
  operation?: 'write' | 'create' | 'change' | 'remove' | 'rename' | 'link' | 'connect' | 'bind' | 'execute' | 'signal';
  call?: string | null;
  path?: string | null;
  path2?: string | null;
  host?: string;
  port?: number;
  errno?: string | null;
  decided_by?: string | null;
  below?: boolean;
  question?: number;
  answer?: 'yes' | 'no' | 'outside' | 'withdrawn';
  /** Of exec and exec-end. */
  id?: number;
  parent?: number | null;
  argv?: string[];
  truncated?: boolean;
  cwd?: string | null;
  outside?: boolean;
  exit_code?: number | null;
  signal?: number | null;
}

// --- What they may do ---

/** In the words of `cordon run`, laid over a profile of the server's user. `{}` is what a call has that says
 * nothing: all may be read but secrets, the workspace and temporary folders of its own written, and there is no
 * network. A path is absolute, or counts from the workspace. */
export interface Sandbox {
  /** "workspace-write", "read-only" or another; missing: what the configuration there says. */
  profile?: string | null;
  /** By default the folder that the command starts in. */
  workspace?: string;
  writable?: string[];
  readable?: string[];
  /** Neither read nor written; may be patterns. */
  deny?: string[];
  /** Sets of names, and "./NAME", that stay as they are. */
  protect?: string[];
  /** For tools, as of `cordon run --with`. */
  presets?: string[];
  network?: 'restricted' | 'proxied' | 'enabled' | 'host';
  /** HOST, HOST:PORT, *.D, **.D; nothing else is reached. */
  allowHosts?: string[];
  denyHosts?: string[];
  allowLocalBinding?: boolean;
  /** Of the machine's localhost. */
  hostPorts?: number[];
  /** [ADDR:]HOSTPORT:PORT */
  publish?: string[];
  sockets?: string[];
  /** "ask": what is refused waits for an answer. */
  watch?: 'off' | 'facts' | 'ask' | 'learn';
  judge?: 'command' | 'every-exec';
  git?: 'read' | 'commit';
  tmp?: 'private' | 'host';
  mode?: 'auto' | 'require' | 'disabled' | 'landlock';
}

/** A Sandbox; the name of a profile of the server's user; the protocol's own object; null: the profile that the
 * configuration there says, else workspace-write. Only the word 'none' means no sandbox at all. */
export type AnySandbox = Sandbox | { permissions: object; [field: string]: unknown } | string | null;

// --- Questions ---

/** What a callback may answer: true is "approved", false "denied". Anything else is an error, and "denied". */
export type Verdict = boolean | Decision | Approval;

/** Answers a question. `withdrawn` is aborted when nobody wants the answer any more. What it throws is a no. Several
 * may be open at once, each with a call of its own. */
export type Asked = (question: Question, withdrawn: AbortSignal) => Verdict | Promise<Verdict>;

/** How a question may be answered; it says which of them it offers. */
export type Decision =
  | 'approved'
  | 'approved_for_session'
  | 'approved_execpolicy_amendment'
  | 'approved_without_sandbox'
  | 'denied'
  | 'denied_execpolicy_amendment'
  | 'timed_out'
  | 'abort';

/** What a server asks the client whose command it is: docs/approvals.md. */
export interface Question {
  /** Before it runs; once more, after its sandbox refused something; or while it runs and what its sandbox
   * refuses waits (`watch` "ask"). */
  kind: 'command' | 'retry' | 'held';
  argv: string[];
  cwd: string;
  reason: string;
  /** What a yes would allow. */
  covers: string;
  /** Where the names of its programs lead. */
  programs: string | null;
  /** "NAME=value", that the call sets. */
  variables: string[];
  /** A prefix that a rule would allow. */
  proposed_execpolicy_amendment: string[] | null;
  /** What it wants to connect to, where it is about a host. */
  network: { host: string; port: number; protocol: 'http' | 'https' | 'socks5_tcp' | 'socks5_udp' } | null;
  available_decisions: Decision[];
}

/** Of approval/request, and of approval/list. */
export interface ApprovalRequest {
  approvalId: string;
  sessionId: string;
  question: Question;
}

/** An answer with a reason, for the one who wanted the command. */
export interface Approval {
  /** One of `available_decisions`. */
  decision: Decision;
  reason?: string | null;
}

/** How a question was answered. */
export interface QuestionAnswer {
  decision: Decision;
  /** "client", "hook", "terminal", "session": it was answered before, "nobody". */
  by: string;
  reason: string | null;
}

/** One of the `questions` of exec/run. */
export interface PutQuestion extends Question {
  id?: string | null;
  /** Missing: there is none. */
  answer?: QuestionAnswer;
  /** These two of kind "held": how long the call waited, and whether a yes led to it. */
  held_ms?: number;
  done?: boolean;
}

// --- Sessions ---

/** What else ends the wait of a call; a string is a text in the output. */
export type Until = string | { text: string } | { quietMs: number } | { bytes: number };

/** Of the calls of a session. */
export interface SessionOptions extends CallOptions {
  yieldTimeMs?: number;
  maxOutputTokens?: number;
  until?: Until;
}

/** Of Sessions.exec(). */
export interface ExecOptions extends SessionOptions {
  /** By default the server's own folder, from which it counts. */
  cwd?: string;
  sandbox?: AnySandbox;
  tty?: boolean;
  /** write() is wanted. */
  stdin?: boolean;
  /** All that it gets to read. */
  input?: string;
  /** Keep what the terminal shows, for screen(). */
  screen?: boolean;
  rows?: number;
  columns?: number;
  /** Laid over the server's environment without secrets. */
  env?: Record<string, string>;
  shell?: string;
  login?: boolean;
  threadId?: string;
  /** What Client.timeline() tells. */
  trace?: Trace[];
}

/** The calls of a model, which only Cordon's server has: by number, as its tools have them, or as a Session. */
export class Sessions {
  private constructor();
  /** Runs shell text until it ends, the time is up (10 s), or what `until` says has come. A command that goes on
   * is a session with a number, also when the call is given up. */
  exec(cmd: string, options?: ExecOptions): Promise<Answer>;
  /** As exec(), on a terminal that can be looked at. */
  start(cmd: string, options?: ExecOptions): Promise<Session>;
  /** Sends characters (U+0003 alone interrupts), or none, and waits a little for what comes; `close` ends the
   * input behind them. */
  write(sessionId: number, chars?: string, options?: SessionOptions & { close?: boolean }): Promise<Answer>;
  /** Waits for its end, or for what `until` says; at most 300 s. */
  wait(sessionId: number, options?: SessionOptions): Promise<Answer>;
  /** Ends it with all that it started, `graceMs` (2000) after SIGTERM. */
  terminate(sessionId: number, options?: { graceMs?: number }): Promise<Answer>;
  /** What its terminal shows; needs `screen` at its start. */
  screen(sessionId: number, options?: { scrollback?: number }): Promise<Screen>;
  /** Those whose commands still run. */
  list(): Promise<Record<string, unknown>[]>;
}

/** One command of a model, made by Sessions.start(). `await using` ends it; `for await` gives the newest answer,
 * and all that come until the end. */
export class Session implements AsyncIterable<Answer>, AsyncDisposable {
  private constructor();
  /** The newest. */
  readonly answer: Answer;
  readonly isRunning: boolean;
  write(chars?: string, options?: SessionOptions & { close?: boolean }): Promise<Answer>;
  /** When it has ended, the last answer again. */
  wait(options?: SessionOptions): Promise<Answer>;
  screen(options?: { scrollback?: number }): Promise<Screen>;
  /** When it has ended, the last answer again. */
  terminate(options?: { graceMs?: number }): Promise<Answer>;
  [Symbol.asyncIterator](): AsyncGenerator<Answer, void, undefined>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a call of a model gives. */
export interface Answer {
  /** What a model is to see. */
  text: string;
  reason: 'ended' | 'yielded' | 'met';
  /** null when the command has ended. */
  sessionId: number | null;
  exitCode: number | null;
  signal: string | null;
  output: Buffer;
  outputBytes: number;
  omittedBytes: number;
  notes: string[];
  /** With an end. */
  denials: Denial[];
  /** With `trace`: for Client.timeline(), also when it has ended. */
  processId?: string;
  /** With `layer`, at the end: what its step changed so far. */
  changes?: { layerId: string; stepId: number; shared: boolean; added: number; modified: number; deleted: number } | null;
}

/** What a terminal shows. */
export interface Screen {
  lines: string[];
  rows: number;
  columns: number;
  cursorRow: number;
  cursorColumn: number;
  cursorVisible: boolean;
  title: string;
}

// --- Files ---

/** Client.files: on the server's host. Paths are absolute, or file URIs, or count from the server's folder, which is the
 * workspace if the sandbox names none. A call is carried out inside of the sandbox, and the kernel decides what it may. */
export class Files {
  private constructor();
  /** The same, carried out in a sandbox, or in a change layer; without `followSymlinks` paths with links are refused. */
  inside(sandbox?: AnySandbox, options?: { followSymlinks?: boolean; layer?: AnyLayer }): Files;
  read(path: string): Promise<Buffer>;
  write(path: string, data: string | Uint8Array): Promise<void>;
  makeDirectory(path: string, options?: { parents?: boolean }): Promise<void>;
  metadata(path: string): Promise<Metadata>;
  realPath(path: string): Promise<string>;
  list(path: string): Promise<Entry[]>;
  walk(path: string, options?: WalkOptions): Promise<Walk>;
  remove(path: string, options?: { recursive?: boolean; missingOk?: boolean }): Promise<void>;
  copy(source: string, destination: string, options?: { recursive?: boolean }): Promise<void>;
  /** "replace" makes or empties it for writing. */
  open(path: string, mode?: 'read' | 'replace'): Promise<Handle>;
  /** Waits until one of the paths, which are not there, may have appeared. false at once: the server
   * cannot watch them, or something is there already. */
  waitFor(paths: string[]): Promise<boolean>;
}

/** An open file, made by Files.open(). Ends with the connection. */
export class Handle implements AsyncDisposable {
  private constructor();
  /** At most 1 MiB; empty at the end. */
  read(offset: number, size?: number): Promise<Buffer>;
  write(offset: number, data: string | Uint8Array): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What is known of a name. */
export interface Metadata {
  isDirectory: boolean;
  isFile: boolean;
  isSymlink: boolean;
  size: number;
  /** 0: the file system does not know. */
  createdAtMs: number;
  modifiedAtMs: number;
}

/** One name in a folder. */
export interface Entry {
  name: string;
  isDirectory: boolean;
  isFile: boolean;
}

/** The limits of a walk. */
export interface WalkOptions {
  maxDepth?: number;
  maxDirectories?: number;
  maxEntries?: number;
  followDirectorySymlinks?: boolean;
  pruneHiddenDirectories?: boolean;
}

/** What a walk found. */
export interface Walk {
  directories: string[];
  files: string[];
  errors: { path: string; message: string }[];
  truncated: boolean;
}

// --- Change layers ---

/** What commands write into: a Layer, or the id or name of one. */
export type AnyLayer = Layer | string;

/** Client.layers: what commands write is kept apart from the real files (docs/layers.md), to be looked at, accepted, dropped and
 * taken back, file by file.
 *
 *     const layer = await client.layers.open({ name: 'agent', cwd: '/work' });
 *     await client.run('make fix', { cwd: '/work', layer });
 *     const { changes } = await layer.changes();
 *     await layer.accept(changes.filter(({ marks }) => !marks.length));
 */
export class Layers {
  private constructor();
  /** The layer of this name, or id, which is made if there is none; without a name a new one. It lies over what the sandbox
   * lets commands in `cwd` write, and what is run in it has that sandbox and workspace when it says none. */
  open(options?: OpenLayerOptions): Promise<Layer>;
  /** All of the server's user, or those that lie over a folder, as layer/list tells them; the one used last comes first. */
  list(options?: { cwd?: string; sizes?: boolean }): Promise<Record<string, any>[]>;
}

/** Of Layers.open(). */
export interface OpenLayerOptions {
  name?: string;
  /** By default the server's own folder. */
  cwd?: string;
  sandbox?: AnySandbox;
  /** Folders that are left out. */
  direct?: string[];
  /** git may commit in it. */
  git?: boolean;
  /** That it may take up. */
  maxBytes?: number;
}

/** Which changes are meant: paths with what lies below them; changes that were listed, which have to be what they were; or
 * all. */
export type Meant = string | Change | (string | Change)[] | { all: true };

/** A change layer, made by Layers.open(). It stays on the disk when it is closed. */
export class Layer implements AsyncDisposable {
  private constructor();
  readonly id: string;
  readonly name: string | null;
  /** What it lies over. */
  readonly roots: string[];
  /** For people. */
  readonly warnings: string[];
  readonly sandbox: AnySandbox | undefined;
  /** What it would change: all, or of these paths and what lies below them; or what one step changed, against what was there
   * before. Also while commands run in it. */
  changes(options?: { paths?: string[]; step?: number }): Promise<Changes>;
  /** How one path differs from the real one. */
  diff(path: string | Change, options?: { step?: number; context?: number; maxBytes?: number }): Promise<Diff>;
  /** What is in a changed file, or what was; of a link its text. */
  read(path: string | Change, side?: 'layer' | 'real'): Promise<Buffer>;
  /** Takes changes into the real files; what was there is kept for undo(). What was changed outside meanwhile is left, but for
   * `force`; and of what is marked only what is named by its own path, but for `marked`. `text`: in place of one file's. */
  accept(what: Meant, options?: { force?: boolean; marked?: boolean; text?: string; dryRun?: boolean }): Promise<Applied>;
  /** Throws changes away, for good. While no command runs in it. */
  drop(what: Meant, options?: { dryRun?: boolean }): Promise<Applied>;
  /** The same of what one step wrote. */
  dropStep(step: number, options?: { dryRun?: boolean }): Promise<Applied>;
  /** Takes back what accept() did, the last time by default. What somebody changed since is left. */
  undo(options?: { acceptId?: number; paths?: string[]; force?: boolean; dryRun?: boolean }): Promise<Applied>;
  /** Lets commands that run in it see what others changed in the real files meanwhile. Whether any does. */
  refresh(): Promise<boolean>;
  /** Its state, its steps and what was accepted, as layer/info tells it. */
  info(): Promise<Record<string, any>>;
  /** The server lets go of it, so that others can have it. Without `keep` it is removed, with all that is in it. */
  close(options?: { keep?: boolean }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a layer would do to one path of the real files. */
export interface Change {
  /** Absolute. */
  path: string;
  /** When it is no UTF-8. */
  pathBase64?: string;
  /** Of a rename. */
  from?: string;
  /** Added, modified, deleted, renamed, of another type, permissions. */
  kind: 'A' | 'M' | 'D' | 'R' | 'T' | 'm';
  /** Why somebody should look first. "leaves": a link out of the workspace; "special": no file, and cannot be accepted;
   * "conflict": the real one was changed meanwhile. */
  marks: ('executable' | 'leaves' | 'protected' | 'runs-later' | 'set-id' | 'special' | 'conflict')[];
  /** Who runs or obeys it, with "runs-later". */
  runBy?: string;
  size: number;
  mode: number;
  binary: boolean;
  /** That wrote it last. */
  step: number;
  /** What it is in the layer. */
  stamp: string;
  realStamp: string;
}

/** What Layer.changes() found, by path. */
export interface Changes {
  changes: Change[];
  counts: { added: number; modified: number; deleted: number; renamed: number; other: number; marked: number;
    conflicts: number };
  state: 'quiet' | 'alive' | 'orphaned' | 'suspect';
  /** What could not be looked at. */
  problems: string[];
}

/** How one path differs. */
export interface Diff {
  change: Change;
  /** As `git diff` writes it; null: it is no text, or too large. */
  unified: string | null;
  binary: boolean;
  truncated: boolean;
  oldSize: number;
  newSize: number;
  /** Of what is no text. */
  oldSha256: string | null;
  newSha256: string | null;
}

/** What Layer.accept(), drop() and undo() did. */
export interface Applied {
  /** For undo(). */
  acceptId?: number;
  done: string[];
  /** The bytes of all of them, in Base64, when one is not UTF-8. */
  doneBase64?: string[];
  /** What stays as it is; `detail` ends in the remedy, and `pathBase64` is there when `path` is not UTF-8. */
  left: { path: string; pathBase64?: string; reason: 'conflict' | 'marked' | 'changed' | 'special' | 'suspect' | 'busy' | 'failed' | 'later';
    detail?: string }[];
}

// --- Errors ---

/** Everything that this package throws. Nothing in its message controls a terminal. */
export class CordonError extends Error {
  /** What would help, where that is known; it is part of the message, too. */
  readonly remedy: string | undefined;
}

/** There is no `cordon` to start a server with. */
export class ProgramNotFound extends CordonError {}

/** The server does not let us in, or does not prove that it is one of this user's. */
export class NotAdmitted extends CordonError {}

/** The connection is gone. A call that was on its way may have been carried out or not. */
export class Disconnected extends CordonError {}

/** The server that spawn() started is gone. */
export class ServerEnded extends Disconnected {
  readonly status: number | null;
  readonly signal: string | null;
  /** The end of what it wrote to its standard error. */
  readonly log: string;
}

/** The time that was given is over. */
export class TimedOut extends CordonError {
  /** Of run(), which has ended the command: what that had written until then. */
  readonly result: Result | undefined;
}

/** The command did not end with 0 (Result.check()). The remedy is that of the first thing that its sandbox refused
 * and that mattered. */
export class CommandFailed extends CordonError {
  readonly result: Result;
  readonly denials: Denial[];
}

/** Input for a command that takes none: it has ended, or its input was closed or never open. */
export class InputClosed extends CordonError {}

/** The server's answer to a call is an error. */
export class RpcError extends CordonError {
  static readonly NOT_FOUND: -32004;
  static readonly INVALID_REQUEST: -32600;
  static readonly UNKNOWN_METHOD: -32601;
  static readonly INVALID_PARAMS: -32602;
  static readonly INTERNAL: -32603;
  static readonly SESSION_ATTACHED: -32010;
  readonly code: number;
  /** What a model is to see. */
  readonly text: string;
  /** A word for programs, where there is one. */
  readonly reason: string | undefined;
  readonly data: any;
  constructor(code: number, message: string, data?: unknown);
}

/** There is no such file. */
export class NotFound extends RpcError {}

/** Wrong state, an unknown or duplicate id, a file that may not be touched. */
export class InvalidRequest extends RpcError {}

/** A rule of the server's user forbids the command; the message says which. */
export class Forbidden extends InvalidRequest {}

/** A limit of the server or of its system; `reason` says which. */
export class LimitReached extends RpcError {}

/** The server does not know the method: it is older, or not Cordon's. */
export class UnknownMethod extends RpcError {}

/** A parameter is wrong; `data.path` is where. */
export class InvalidParams extends RpcError {}

/** The system said no: no such program, directory, profile... */
export class SystemRefused extends RpcError {}

/** The session to be resumed is another connection's. */
export class SessionAttached extends RpcError {}
