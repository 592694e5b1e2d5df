import type { ModelPart, ModelProgress, ModelReply } from '../../model.ts';
import { ModelError } from './model-error.ts';

/**
 * Maximum number of parts, and of characters, of one response. Models accept no longer messages, and get each response
 * back in the next request.
 */
export const maxParts = 100;
export const maxCharacters = 500_000;
const maxNameLength = 200;

type TextPart = Extract<ModelPart, { text: string }>;
type CallPart = Extract<ModelPart, { type: 'call' }>;

/** The response of a model, built from the events of its host. */
export class ModelResponse {
  readonly #parts: ModelPart[] = [];
  finishReason: ModelReply['finishReason'] = 'other';
  readonly usage: ModelReply['usage'] = { input: undefined, output: undefined };
  #characters = 0;
  /** Progress that was not reported yet. Consecutive text is one item. */
  #progress: ModelProgress[] = [];

  get hasCalls(): boolean {
    return this.#parts.some(({ type }) => type === 'call');
  }

  /** Returns the last part if it is a text of this type. Otherwise starts a new part. */
  getOrStartText(type: TextPart['type']): TextPart {
    const last = this.#parts.at(-1);
    return last?.type === type ? last : this.startText(type);
  }

  startText(type: TextPart['type']): TextPart {
    const part: TextPart = { type, text: '' };
    this.#add(part);
    return part;
  }

  appendText(part: TextPart, text: string): void {
    if (text === '') return;
    this.#count(text);
    part.text += text;
    const last = this.#progress.at(-1);
    if (part.type === 'text' && last && 'text' in last) last.text += text;
    else if (part.type === 'thought' && last && 'thought' in last) last.thought += text;
    else this.#progress.push(part.type === 'text' ? { text } : { thought: text });
  }

  /** Starts a call. If the host specifies no id, the call gets a generated one. */
  startCall(id: string, tool: string): CallPart {
    const part: CallPart = { type: 'call', id: id || crypto.randomUUID(), tool: '', arguments: '' };
    this.#add(part);
    this.#count(part.id);
    this.nameCall(part, tool);
    return part;
  }

  /** Sets the tool of a call whose name arrives after its start. */
  nameCall(part: CallPart, tool: string): void {
    if (part.tool !== '' || tool === '') return;
    this.#count(tool);
    part.tool = tool;
    this.#progress.push({ tool });
  }

  appendArguments(part: CallPart, json: string): void {
    this.#count(json);
    part.arguments += json;
  }

  /** Stores data that is sent back to the host with a part. */
  setMeta(part: ModelPart, meta: object): void {
    const text = JSON.stringify(meta);
    this.#count(text);
    part.meta = text;
  }

  takeProgress(): ModelProgress[] {
    return this.#progress.splice(0);
  }

  /** Returns the finished response. @throws ModelError if it is invalid */
  getResult(): ModelReply {
    for (const part of this.#parts) {
      if (part.type !== 'call') continue;
      if (part.tool === '') throw new ModelError('malformed', 'sent a tool call without a tool name');
      if (Math.max(part.tool.length, part.id.length) > maxNameLength)
        throw new ModelError('oversize', `sent a tool call whose name or id has more than ${maxNameLength} characters`);
      part.arguments ||= '{}';
    }
    // Hosts reject an empty text when it is sent back to them.
    const parts = this.#parts.filter((part) => part.type !== 'text' || part.text !== '');
    if (parts.length === 0 && this.finishReason === 'other')
      throw new ModelError('malformed', "sent nothing that belongs to its API; check the model's URL");
    return { parts, finishReason: this.finishReason, usage: this.usage };
  }

  #add(part: ModelPart): void {
    if (this.#parts.length >= maxParts)
      throw new ModelError('oversize', `sent more than ${maxParts} texts and tool calls in one response`);
    this.#parts.push(part);
  }

  #count(text: string): void {
    this.#characters += text.length;
    if (this.#characters > maxCharacters)
      throw new ModelError('oversize', `sent a response of more than ${maxCharacters} characters`);
  }
}
