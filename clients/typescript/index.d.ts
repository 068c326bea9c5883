/** The `sandbox` object of the protocol. In its place: the name of a profile of the server's user; null or nothing:
 * the profile that the configuration there says, else workspace-write; 'none': no sandbox at all. */
export type SandboxObject = Record<string, unknown>;

/** One in the words of `cordon run`, laid over a profile of the server's user. */
export interface NamedSandbox extends SandboxObject {
  /** null: what the configuration there says. */
  profile: string | null;
  cwd?: string;
  network?: 'restricted' | 'enabled';
  watch?: 'off' | 'facts' | 'ask' | 'learn';
  judge?: 'command' | 'every-exec';
  git?: 'read' | 'commit';
  mode?: 'auto' | 'require' | 'disabled';
  protect?: string[];
  writable?: string[];
  readable?: string[];
  deny?: string[];
  sockets?: string[];
  /** Names of presets for tools, as of `cordon run --with`. */
  with?: string[];
}

export interface SandboxOptions {
  /** Absolute paths, or ":root", ":minimal", ":project_roots", ":tmpdir", ":slash_tmp". */
  read?: string[];
  write?: string[];
  /** These may also be patterns. */
  deny?: string[];
  network?: boolean;
  /** "ask": what it refuses waits while the client is asked (Client.handlers). */
  watch?: 'off' | 'facts' | 'ask' | 'learn';
}

/** Everything may be read, the workspace and temporary directories written, unless the options say else. */
export function sandbox(workspace: string, options?: SandboxOptions): SandboxObject;

export class CordonError extends Error {}

/** The connection is gone. A call that was on its way may have been carried out or not. */
export class Disconnected extends CordonError {}

/** The server's answer to a call is an error. */
export class RpcError extends CordonError {
  static readonly NOT_FOUND: -32004;
  static readonly INVALID_REQUEST: -32600;
  static readonly UNKNOWN_METHOD: -32601;
  static readonly INVALID_PARAMS: -32602;
  static readonly INTERNAL: -32603;
  static readonly SESSION_ATTACHED: -32010;
  readonly code: number;
  readonly text: string;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown);
}

export interface Output {
  type: 'output';
  stream: 'stdout' | 'stderr' | 'pty';
  data: Buffer;
  /** Of its first byte in all output; missing: the server does not tell. */
  offset?: number;
}

/** Output that is not retained any more. */
export interface Gap {
  type: 'gap';
  bytes: number;
}

export interface Exited {
  type: 'exited';
  exitCode: number;
  sandboxDenied: boolean;
  signal: string | null;
  denials: Denial[];
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

/** The last event: nothing holds the output open any more. */
export interface Closed {
  type: 'closed';
}

export type ProcessEvent = Output | Gap | Exited | Closed;

export interface Result {
  /** Of a terminal: everything. */
  stdout: Buffer;
  stderr: Buffer;
  exit: Exited;
  /** Bytes. */
  lost: number;
}

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

/** Made by Client.start(). */
export class Process implements AsyncIterable<ProcessEvent> {
  readonly id: string;
  readonly sandboxType: string;
  readonly exit: Exited | null;
  readonly isClosed: boolean;
  private constructor();
  /** Everything that happens, in order, until it is closed. For one reader. */
  events(): AsyncGenerator<ProcessEvent, void, undefined>;
  [Symbol.asyncIterator](): AsyncGenerator<ProcessEvent, void, undefined>;
  /** Client.timeline() of this process. */
  timeline(after?: number): AsyncGenerator<TimelineEvent, void, undefined>;
  /** Writes `data` and ends the input, and collects all output until it is closed. */
  communicate(data?: string | Uint8Array): Promise<Result>;
  /** How the command ended. Its output may go on, if it left something behind. */
  wait(): Promise<Exited>;
  /** Written once, also when the connection is lost meanwhile. */
  write(data: string | Uint8Array): Promise<void>;
  /** false: it had no input, or it was closed before. */
  closeStdin(): Promise<boolean>;
  /** SIGINT, as by Ctrl-C. */
  interrupt(): Promise<void>;
  /** Ends it with all that it started; after SIGTERM and `graceMs` if there are any. Whether it was
   * still running. */
  terminate(graceMs?: number): Promise<boolean>;
  resize(rows: number, columns: number): Promise<void>;
}

export interface Metadata {
  isDirectory: boolean;
  isFile: boolean;
  isSymlink: boolean;
  size: number;
  /** 0: the file system does not know. */
  createdAtMs: number;
  modifiedAtMs: number;
}

export interface Entry {
  name: string;
  isDirectory: boolean;
  isFile: boolean;
}

export interface WalkOptions {
  maxDepth?: number;
  maxDirectories?: number;
  maxEntries?: number;
  followDirectorySymlinks?: boolean;
  pruneHiddenDirectories?: boolean;
}

export interface Walk {
  directories: string[];
  files: string[];
  errors: { path: string; message: string }[];
  truncated: boolean;
}

/** An open file, made by Files.open(). Ends with the connection. */
export class Handle {
  private constructor();
  /** At most 1 MiB; empty at the end. */
  read(offset: number, size?: number): Promise<Buffer>;
  write(offset: number, data: string | Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** Paths are absolute, or file URIs. */
export class Files {
  private constructor();
  /** The same, carried out in a sandbox; without `followSymlinks` paths with links are refused. */
  inside(sandbox: SandboxObject | string | null, options?: { followSymlinks?: boolean }): Files;
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

export type Until = { text: string } | { quietMs: number } | { bytes: number };

export interface SessionOptions {
  yieldTimeMs?: number;
  maxOutputTokens?: number;
  until?: Until;
}

export interface ExecOptions extends SessionOptions {
  sandbox?: SandboxObject | string | null;
  tty?: boolean;
  pipeStdin?: boolean;
  screen?: boolean;
  rows?: number;
  columns?: number;
  env?: Record<string, string>;
  shell?: string;
  login?: boolean;
  threadId?: string;
  /** What Client.timeline() tells. */
  trace?: Trace[];
}

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
}

export interface Screen {
  lines: string[];
  rows: number;
  columns: number;
  cursorRow: number;
  cursorColumn: number;
  cursorVisible: boolean;
  title: string;
}

/** The calls of a model, which only Cordon's server has. */
export class Sessions {
  private constructor();
  /** Runs shell text until it ends or the time is up. */
  exec(cmd: string, cwd: string, options?: ExecOptions): Promise<Answer>;
  write(sessionId: number, chars?: string, options?: SessionOptions & { close?: boolean }): Promise<Answer>;
  wait(sessionId: number, options?: SessionOptions): Promise<Answer>;
  terminate(sessionId: number, options?: { graceMs?: number }): Promise<Answer>;
  screen(sessionId: number, options?: { scrollback?: number }): Promise<Screen>;
  list(): Promise<Record<string, unknown>[]>;
}

export interface StartOptions {
  /** The whole environment; missing: the server's without secrets. */
  env?: Record<string, string>;
  sandbox?: SandboxObject | string | null;
  tty?: boolean;
  /** write() is wanted. */
  stdin?: boolean;
  /** Rows and columns of the terminal. */
  size?: [number, number];
  processId?: string;
  arg0?: string;
  /** What timeline() tells. */
  trace?: Trace[];
  /** Further fields of process/start. */
  [field: string]: unknown;
}

export interface ConnectOptions {
  /** Is sent. Without one, a server at a loopback address has to know the user's own token, if there is
   * one, which is shown to be known and never sent; '' is for a server that does not. */
  token?: string;
  name?: string;
  /** How long a lost connection is made anew; 0: not at all. Default 45000. */
  reconnectForMs?: number;
  /** The session of an earlier client. */
  resume?: string;
}

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

/** What is to be answered. */
export interface Approval {
  /** One of `available_decisions`. */
  decision: Decision;
  reason?: string | null;
}

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

export interface Handlers {
  'approval/request'?: (request: ApprovalRequest) => Approval | Promise<Approval>;
  [method: string]: ((params: any) => unknown) | undefined;
}

export class Client {
  readonly sessionId: string;
  /** Of the server's environment, as environment/info tells. */
  readonly info: Record<string, unknown>;
  readonly files: Files;
  readonly sessions: Sessions;
  /** By method: they answer requests of the server. */
  handlers: Handlers;
  /** Notifications that belong to no process of this client. */
  onEvent: (method: string, params: Record<string, unknown>) => void;
  private constructor();
  /** Any method of the protocol. */
  call(method: string, params?: Record<string, unknown>): Promise<any>;
  start(argv: string[], cwd: string, options?: StartOptions): Promise<Process>;
  /** A process of this session that another client started (ConnectOptions.resume). */
  takeUp(processId: string): Promise<Process>;
  /** What a process did that was started with `trace`, event by event until it is closed. Any number of
   * readers. What was not kept until it was read is one "lost". */
  timeline(processId: string, after?: number): AsyncGenerator<TimelineEvent, void, undefined>;
  /** What runs goes on for as long as the server keeps the session. */
  close(): Promise<void>;
}

/** Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH. */
export function connect(url: string, options?: ConnectOptions): Promise<Client>;

/** Starts a server, such as ["cordon", "serve", "--listen", "stdio"]; it ends with the client. */
export function spawn(argv: string[], options?: { name?: string }): Promise<Client>;
