/** What the server answers, as docs/operating.md and /openapi.json describe it. */

export interface History {
  last: number;
  times: number[];
  columns: Record<string, (number | null)[]>;
}

export interface Overview {
  node: string;
  version: string;
  at: number;
  started_at: number;
  ready: boolean;
  not_ready: string[];
  totals: { accepted: number; delivered: number; failed: number; refused: number };
  dead_letters: number;
  recent: History;
}

export interface Alert {
  name: string;
  severity: "critical" | "warning" | "info";
  state: "ok" | "pending" | "firing";
  since: number | null;
  value: number | null;
  compares: string;
  threshold: number;
  text: string;
  runbook: string;
}

export interface LetterClass {
  error: string;
  count: number;
}

export interface Letter {
  id: string;
  original_message: {
    msg_id: string;
    sender: string;
    recipient: string;
    content: string[];
    timestamp: number;
  };
  error: string;
  error_class: string;
  retry_count: number;
  first_attempt: number;
  last_attempt: number;
  dlq_timestamp: number;
  source_topic: string;
  source_partition: number;
  source_offset: number;
  status: "waiting" | "replayed" | "discarded" | "expired" | "delivered";
  replayable: boolean;
  settled_at?: number;
}

export interface Schedule {
  message_id: string;
  state: string;
  target: { type: string; url?: string; account?: string; group?: string };
  made_at: number;
  deliver_at: number;
  retry_count?: number;
  next_at?: number;
  ended_at?: number;
  needs_sealing?: boolean;
  error?: string;
}

export interface AccountSchedule {
  account: string;
  handle: string;
  schedule: Schedule;
}

export interface TraceEvent {
  at: number;
  device: string;
  what: string;
}

export interface Trace {
  message_id: string;
  events: TraceEvent[];
  states: Record<string, string>;
}

export interface Storage {
  folder: string;
  disk_free_bytes: number;
  disk_total_bytes: number;
  tight: boolean;
  why_tight: string;
  log_bytes: number;
  log_segments: number;
  rows_bytes: number;
  rows_in_memory: number;
  offset: number;
  pointer: number;
  unsaved_rows: number;
  unsaved_bytes: number;
  checkpoints: number;
  checkpoint_at: number;
  checkpoint_ms: number;
  commits_failed: number;
  troubles: number;
  records_poisoned: number;
  fold: number;
  checked_at: number;
  checked_ms: number;
  clock: { state: string; ahead_ms: number };
}

/** A part of the page under its own tab. */
export interface View {
  name: string;
  title: string;
  element: HTMLElement;
  /** It is shown, with the rest of the address. */
  show(rest: string[]): void;
  /** Asked every two seconds while it is shown. */
  tick(): void;
  /** A key was pressed that no field took. True if it meant something. */
  key(event: KeyboardEvent): boolean;
  /** Where `/` goes. */
  field?: HTMLElement;
}
