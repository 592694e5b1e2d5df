/** Limits requests that are sent a second time: retries must not double the load of an upstream that fails. */
export type RetryBudget = {
  noteRequest(): void;
  /** Uses up one retry. False if none is left. */
  take(): boolean;
};

/** Retries earned by each request. */
const share = 0.1;
/** Most retries that a quiet upstream saves up. */
const most = 10;

export function createRetryBudget(): RetryBudget {
  let left = most;
  return {
    noteRequest() {
      left = Math.min(most, left + share);
    },
    take() {
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}
