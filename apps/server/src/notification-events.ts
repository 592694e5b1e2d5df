/** Events that people and programs can be notified about. */
export const notificationEvents = {
  'upstream.failing': {
    label: 'API failing',
    text: 'More than half of the recent calls failed (at least 20 calls in 2 or 10 minutes).',
  },
  'key.expiring': { label: 'Key expiring', text: 'An API key expires within seven days.' },
  'key.unused': { label: 'Key unused', text: 'An API key has not been used for 90 days.' },
  'login.ended': {
    label: 'Login ended',
    text: 'The provider no longer accepts the login. The agent has to log in again.',
  },
  'description.changed': {
    label: 'API description changed',
    text: 'A watched API description differs from the last import.',
  },
  'quota.near': { label: 'Quota nearly reached', text: 'At least 80% of a quota is used.' },
} as const;

export type NotificationEvent = keyof typeof notificationEvents;
export const notificationEventNames = Object.keys(notificationEvents) as [NotificationEvent, ...NotificationEvent[]];

/** A notification. `subject` is a slug, the id of a key, or the name of a quota. */
export type WorkspaceNotification = {
  event: NotificationEvent;
  subject: string;
  /** A sentence without text from a caller or an upstream. */
  text: string;
  /** Deduplication key. Notifications with the same key are sent once while the first is retained. */
  dedupe: string;
};

/** Returns the dashboard page that a notification is about. */
export function getNotificationPath({ event, subject }: Pick<WorkspaceNotification, 'event' | 'subject'>): string {
  switch (event) {
    case 'upstream.failing':
      return `/calls?server=${subject}`;
    case 'login.ended':
      return `/servers/${subject}/settings/logins`;
    case 'description.changed':
      return `/servers/${subject}/settings/import`;
    case 'quota.near':
      return '/settings';
    default:
      return '/keys';
  }
}

const minuteMs = 60_000;
/** Delays after each failed attempt. After the last one, a day after the first attempt, delivery is abandoned. */
const retryDelaysMs = [1, 5, 30, 120, 420, 864].map((minutes) => minutes * minuteMs);

/** Returns the time of the next delivery attempt, or undefined if delivery is abandoned. */
export function getNextAttemptAt(now: number, attempts: number): number | undefined {
  const delayMs = retryDelaysMs[attempts - 1];
  return delayMs === undefined ? undefined : now + delayMs;
}

export const maxWebhooks = 5;
export const notificationRetentionMs = 30 * 24 * 60 * minuteMs;
export const maxNotificationsPerDay = 200;
/** Maximum number of people who are emailed per notification. */
export const maxMailRecipients = 50;
