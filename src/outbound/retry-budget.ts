/** How many requests may be sent a second time: retries must not double the load of an upstream that fails. */
export type RetryBudget = {
  noteRequest(): void;
  /** Whether there is one left, which is then used up. */
  take(): boolean;
};

/** Retries for each request. */
const share = 0.1;
/** What a quiet upstream may have saved up. */
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
