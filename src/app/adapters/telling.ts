import type { Secrets } from '../../config.ts';
import { messageOf, OutboundError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { Telling } from '../../operations/operation.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { sendWebhook } from '../../outbound/webhook.ts';
import { userAgentOf } from '../../version.ts';

const smtpMs = 10_000;

/** Sends webhooks by the guarded HTTP client, and mail by the SMTP server of the operator. */
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
          // What the server of the operator says is for the operator.
          log.warn({ message: messageOf(error) }, 'could not send a mail');
          return 'the mail server of this service did not take it';
        }
      }),
  };
}
