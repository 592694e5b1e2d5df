/** What limits ask of a caller's standing; see `Caller`. */
export type SharingCaller = {
  /** The address of a caller whose credential no upstream has accepted. */
  readonly network?: string | undefined;
  /** What is known of an accepted credential; absent for keys and logins of ours, which are good. */
  readonly credential?: { readonly network: string; readonly isProven: boolean } | undefined;
  /** Whether the tool that is called refuses other credentials. */
  readonly isJudged?: boolean | undefined;
};

/** Who has called a server or a workspace of late; times are monotonic, in ms. */
export type Activity = {
  /** A call with a credential that is proven, with one that is at least judged, and with one that is at least accepted. */
  provenAt: number;
  judgedAt: number;
  acceptedAt: number;
  /** The address of the last accepted credential, when that came, and when the last one of another address did. */
  network: string | undefined;
  networkAt: number;
  otherAt: number;
};

/** How long after the last call of a caller of a better standing some slots and some of the rate are kept for such callers. */
export const keptMs = 10 * 60_000;
const never = Number.NEGATIVE_INFINITY;

export function createActivity(): Activity {
  return { provenAt: never, judgedAt: never, acceptedAt: never, network: undefined, networkAt: never, otherAt: never };
}

export function isProvenCaller({ network, credential }: SharingCaller): boolean {
  return network === undefined && (credential === undefined || credential.isProven);
}

/** Notes a call, of a caller that is no stranger. */
export function noteActivity(activity: Activity, { credential, isJudged }: SharingCaller, now: number): void {
  activity.acceptedAt = now;
  if (credential === undefined || credential.isProven) {
    activity.provenAt = now;
    activity.judgedAt = now;
    return;
  }
  if (isJudged) activity.judgedAt = now;
  if (activity.network !== credential.network) {
    activity.otherAt = activity.networkAt;
    activity.network = credential.network;
  }
  activity.networkAt = now;
}

/** Whether others than the accepted callers of this address were here of late. */
export function hasOthers({ provenAt, network, networkAt, otherAt }: Activity, own: string, now: number): boolean {
  return now - Math.max(provenAt, network === own ? otherAt : networkAt) < keptMs;
}
