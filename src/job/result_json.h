/* The result of a command as JSON. The names below are stable.
 *
 *   {
 *     "end": "exited" | "signaled" | "timed-out" | "cancelled" | "denied" | "failed-to-start",
 *     "exit_code": 0,                  number, or null when the command has none
 *     "signal": null,                  or its name, "SIGKILL"
 *     "signal_number": null,           or 9
 *     "timed_out": false,
 *     "shell_exit_code": 0,            what `cordon run` exits with (124, 125, 128+n, ...)
 *     "wall_time_ns": 1200000,
 *     "failure": null,                 or {"stage": "sandbox"|"cwd"|"exec", "code": "system",
 *                                          "errno": "ENOENT" or null, "message": "..."}
 *     "usage": {                       null when not known
 *       "user_time_ns", "system_time_ns", "memory_peak_kb", "voluntary_context_switches",
 *       "involuntary_context_switches", "bytes_written"
 *     },
 *     "limits": {                      those that there are, by default or asked for
 *       "memory": {"value": 536870912, "by": "rlimit" | "cgroup" | "pid-namespace" |
 *                                              "none": it is not kept,
 *                  "hit": true or false; null where the kernel does not tell, "default": false},
 *       "cpu-time": ..., "pids": ..., "file-size": ..., "files": ..., "address-space": ...
 *     },                               cpu-time in ns
 *     "tty": false,
 *     "stdout": "text",                invalid UTF-8 becomes U+FFFD; what is left out in the middle
 *                                      becomes a line "... N bytes omitted ..."
 *     "stdout_base64": "...",          only when not valid UTF-8: the retained bytes
 *     "stdout_bytes": 4,               that came in all
 *     "stdout_omitted_bytes": 0,       of these, left out in the middle
 *     "stdout_omitted_at": 524288,     offset of the gap; only when there is one
 *     "stderr"...                      the same; not with a tty
 *     "order": [                       segments in order of arrival
 *       {"stream": "stdout", "offset": 0, "at": 0, "len": 4}, ...
 *     ],
 *     "order_omitted_bytes": 0,        bytes whose order was not kept
 *     "output_cut": false,             a background child held the output open at the end
 *     "denials": [
 *       {"operation": "read" | "write" | "execute" | "connect" | "bind" | "signal" | "other",
 *        "evidence": "fact" | "heuristic",
 *        "source": "sandbox" | "host" | "unknown", "path": "/etc/x" or null,
 *        "host": null, "reason": "not_allowed" or null,      of a host: as the proxy says it
 *        "errno": "EROFS" or null, "decided_by": "..." or null, "remedy": "...",
 *        "path2": null,                of a rename or link, the second name
 *        "port": null, "call": "openat" or null, "program": "git" or null, "pid": 4711 or null,
 *        "creates": true,              a write of a new name
 *        "count": 1,                   how often it was refused
 *        "below": false,               true: `count` of them below `path`, not told one by one
 *        "aside": false}               true: tried in passing, and not why the command failed
 *     ],                               also with an exit code of 0: refused, but it ended well
 *     "published": ["127.0.0.1:40211:3000"],   ports of it that this machine saw, if there were any
 *     "events": [...],                 these two only where a timeline was asked for and told:
 *     "events_dropped": 0,             docs/timeline.md
 *     "execs": [...],                  where it is of programs, and how many there is no room for
 *     "execs_dropped": 0,
 *     "sandbox": {                     null when not known
 *       "degraded": false,
 *       "layers": {"user-namespace": {"state": "enforced", "why": null}, ...}
 *     }
 *   }
 */
#pragma once

struct denials;
struct job;
struct json_t;
struct resource_limits;
struct resource_limits_report;
struct result_texts;
struct job_result;

/* A new reference, owned by the caller (json_decref()). `texts`: the output is not in it, but in what
 * result_texts_dump() writes; NULL: it is. */
struct json_t *result_to_json(const struct job_result *result, struct result_texts *texts);

/* Its parts "denials", "limits" and "signal" (0: null); new references. */
struct json_t *denials_to_json(const struct denials *denials);
struct json_t *resource_limits_to_json(const struct resource_limits *asked,
                                       const struct resource_limits_report *report);
struct json_t *signal_to_json(int signal);

/* The "events" of a job, as text; NULL: it has no timeline. Caller frees. */
char *events_to_text(const struct job *job);
