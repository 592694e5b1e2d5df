import { type NoticeEvent, noticePath } from '../../domain/notices.ts';

/** Content of a webhook or an email. `test` is the event that a person sends to test a webhook. */
export type Told = { event: NoticeEvent | 'test'; subject: string; text: string; at: number };
type Place = { workspaceId: string; baseUrl: string };

const linkOf = ({ event, subject }: Told, { baseUrl }: Place) =>
  baseUrl + (event === 'test' ? '/notifications' : noticePath({ event, subject }));

/** Breaks mentions, links behind other text, and markup, so that a name in a chat message is only text. */
function escapeForChat(text: string): string {
  return text.replaceAll('<', '‹').replaceAll('>', '›').replaceAll('@', '@\u200b').replaceAll('](', ']\u200b(');
}

/** Creates the body of a webhook. Chat services show the field `text`. */
export function webhookBody(told: Told, place: Place): string {
  const { event, subject, text, at } = told;
  const link = linkOf(told, place);
  return JSON.stringify({
    type: event,
    timestamp: new Date(at).toISOString(),
    text: `${escapeForChat(text)} ${link}`,
    data: { workspace_id: place.workspaceId, subject, text, link },
  });
}

export function mailOf(told: Told, place: Place): { subject: string; text: string } {
  const text = `${told.text}\n\n${linkOf(told, place)}\n\n--\nYou receive this email because of your notification settings: ${place.baseUrl}/notifications\n`;
  return { subject: `Toolhost: ${told.text}`, text };
}
