/** Properties of a caller that decide its share of the slots; see `Caller`. */
export type SharingCaller = {
  /** The address of a caller whose credential no upstream has accepted. */
  readonly network?: string | undefined;
  /** What is known about an accepted credential; absent for our own keys and logins, which are always good. */
  readonly credential?: { readonly network: string; readonly isProven: boolean } | undefined;
  /** Whether the called tool refuses other credentials. */
  readonly isChecked?: boolean | undefined;
};

/** Who has recently called a server or a workspace; times are monotonic, in ms. */
export type Activity = {
  /** Times of the last call with a proven credential, with one at least checked, and with one at least accepted. */
  provenAt: number;
  checkedAt: number;
  acceptedAt: number;
  /** Address and time of the last accepted credential, and the time of the last one from another address. */
  network: string | undefined;
  networkAt: number;
  otherAt: number;
};

/**
 * How long after the last call of a better-known caller part of the slots and of the rate stays reserved for such
 * callers.
 */
export const keptMs = 10 * 60_000;
const never = Number.NEGATIVE_INFINITY;

export function createActivity(): Activity {
  return { provenAt: never, checkedAt: never, acceptedAt: never, network: undefined, networkAt: never, otherAt: never };
}

export function isProvenCaller({ network, credential }: SharingCaller): boolean {
  return network === undefined && (credential === undefined || credential.isProven);
}

/** Notes a call of a caller that is no stranger. */
export function noteActivity(activity: Activity, { credential, isChecked }: SharingCaller, now: number): void {
  activity.acceptedAt = now;
  if (credential === undefined || credential.isProven) {
    activity.provenAt = now;
    activity.checkedAt = now;
    return;
  }
  if (isChecked) activity.checkedAt = now;
  if (activity.network !== credential.network) {
    activity.otherAt = activity.networkAt;
    activity.network = credential.network;
  }
  activity.networkAt = now;
}

/** Whether there were recent calls other than those of the accepted callers of this address. */
export function hasOthers({ provenAt, network, networkAt, otherAt }: Activity, own: string, now: number): boolean {
  return now - Math.max(provenAt, network === own ? otherAt : networkAt) < keptMs;
}
