import { getErrorMessage, OutboundError } from '@toolhost/errors/errors';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { sendWebhook } from '@toolhost/safe-http/webhook';
import type { Secrets } from '../../config.ts';
import type { Log } from '../../log.ts';
import type { Notifier } from '../../operations/operation.ts';
import { formatUserAgent } from '../../version.ts';

/** Time limit of each step of sending an email. */
const smtpTimeoutMs = 10_000;

/**
 * Creates the senders of notifications: webhooks through the guarded HTTP client, and mail through the operator's
 * SMTP server.
 */
export function createNotificationSender(http: HttpClient, { mail }: Secrets, log: Log): Notifier {
  return {
    async sendWebhook(target, message) {
      try {
        const status = await sendWebhook(http, target, message, formatUserAgent());
        return status >= 200 && status < 300 ? undefined : `HTTP ${status}`;
      } catch (error) {
        if (error instanceof OutboundError) return error.message;
        throw error;
      }
    },
    sendMail:
      mail &&
      (async (message) => {
        const { createTransport } = await import('nodemailer');
        const timeouts = {
          connectionTimeout: smtpTimeoutMs,
          greetingTimeout: smtpTimeoutMs,
          socketTimeout: smtpTimeoutMs,
        };
        try {
          await createTransport({ url: mail.url, ...timeouts }).sendMail({ from: mail.from, ...message });
          return undefined;
        } catch (error) {
          // The reply of the operator's server is only for the operator.
          log.warn({ message: getErrorMessage(error) }, 'could not send an email');
          return 'the mail server rejected the message';
        }
      }),
  };
}
