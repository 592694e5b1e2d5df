import { getNotificationPath, type NotificationEvent } from '../../notification-events.ts';

/** Content of a webhook or an email. `test` is the event that a person sends to test a webhook. */
export type NotificationMessage = { event: NotificationEvent | 'test'; subject: string; text: string; at: number };
type LinkContext = { workspaceId: string; baseUrl: string };

const getLink = ({ event, subject }: NotificationMessage, { baseUrl }: LinkContext) =>
  baseUrl + (event === 'test' ? '/notifications' : getNotificationPath({ event, subject }));

/** Breaks mentions, links behind other text, and markup, so that a name in a chat message is only text. */
function escapeForChat(text: string): string {
  return text.replaceAll('<', '‹').replaceAll('>', '›').replaceAll('@', '@\u200b').replaceAll('](', ']\u200b(');
}

/** Creates the body of a webhook. Chat services show the field `text`. */
export function createWebhookBody(message: NotificationMessage, context: LinkContext): string {
  const { event, subject, text, at } = message;
  const link = getLink(message, context);
  return JSON.stringify({
    type: event,
    timestamp: new Date(at).toISOString(),
    text: `${escapeForChat(text)} ${link}`,
    data: { workspace_id: context.workspaceId, subject, text, link },
  });
}

export function createMail(message: NotificationMessage, context: LinkContext): { subject: string; text: string } {
  const text = `${message.text}\n\n${getLink(message, context)}\n\n--\nYou receive this email because of your notification settings: ${context.baseUrl}/notifications\n`;
  return { subject: `Toolhost: ${message.text}`, text };
}
