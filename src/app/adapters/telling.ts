import type { Secrets } from '../../config.ts';
import { messageOf, OutboundError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { Telling } from '../../operations/operation.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { sendWebhook } from '../../outbound/webhook.ts';
import { userAgentOf } from '../../version.ts';

const smtpMs = 10_000;

/**
 * Creates the senders of notifications: webhooks through the guarded HTTP client, and mail through the operator's
 * SMTP server.
 */
export function createTelling(http: HttpClient, { mail }: Secrets, log: Log): Telling {
  return {
    async webhook(target, message) {
      try {
        const status = await sendWebhook(http, target, message, userAgentOf());
        return status >= 200 && status < 300 ? undefined : `HTTP ${status}`;
      } catch (error) {
        if (error instanceof OutboundError) return error.message;
        throw error;
      }
    },
    mail:
      mail &&
      (async (message) => {
        const { createTransport } = await import('nodemailer');
        const timeouts = { connectionTimeout: smtpMs, greetingTimeout: smtpMs, socketTimeout: smtpMs };
        try {
          await createTransport({ url: mail.url, ...timeouts }).sendMail({ from: mail.from, ...message });
          return undefined;
        } catch (error) {
          // The reply of the operator's server is only for the operator.
          log.warn({ message: messageOf(error) }, 'could not send an email');
          return 'the mail server rejected the message';
        }
      }),
  };
}
