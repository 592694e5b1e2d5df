import type { TextOrArgument } from '../config/sending/wire-fields.ts';
import { GivenFile } from '../files/kept-files.ts';
import { mediaTypePattern } from '../http/media-type.ts';
import { percentDecoded } from '../http/percent-encoding.ts';
import { hasControlCharacter, valueText } from '../http/values.ts';
import { refusedArgument } from './pairs.ts';
import { type Arguments, own, type SentArgument } from './sent-argument.ts';

/** The bytes of a file, its media type where a data URL names it, and its name where another tool gave it. */
export type FileContent = { bytes: Buffer; mediaType: string | undefined; name?: string };

const notBase64 =
  'is not Base64; allowed: Base64 of the bytes, a data URL such as data:image/png;base64,…, or the address of a file that a tool gave';
const longestDataHead = 300;

/** Decodes Base64 (RFC 4648, 4 and 5; white space is skipped) or a data URL (RFC 2397), or takes a file as it is. @throws ToolFailure invalid_arguments */
export function fileContent(argument: SentArgument, value: unknown): FileContent {
  if (value instanceof GivenFile) return { bytes: value.bytes, ...value.head };
  if (typeof value !== 'string') throw refusedArgument(argument, notBase64);
  if (!/^data:/i.test(value)) return { bytes: base64Bytes(argument, value), mediaType: undefined };
  const comma = value.indexOf(',');
  if (comma < 0 || comma > longestDataHead) throw refusedArgument(argument, notBase64);
  const head = value.slice('data:'.length, comma);
  const text = value.slice(comma + 1);
  const isBase64 = /;\s*base64\s*$/i.test(head);
  const given = (isBase64 ? head.slice(0, head.lastIndexOf(';')) : head).trim();
  const mediaType = mediaTypePattern.test(given) ? given : undefined;
  const raw = percentDecoded(text);
  return { bytes: isBase64 ? base64Bytes(argument, raw.toString('latin1')) : raw, mediaType };
}

function base64Bytes(argument: SentArgument, given: string): Buffer {
  const text = given.replaceAll(/[ \t\r\n\f]/g, '');
  const padding = text.length - text.replace(/={1,2}$/, '').length;
  const isWhole = (text.length - padding) % 4 !== 1 && (padding === 0 || text.length % 4 === 0);
  if (!isWhole || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw refusedArgument(argument, notBase64);
  return Buffer.from(text, 'base64');
}

/** The file name of an argument, from a constant or from another argument. @throws ToolFailure invalid_arguments */
export function fileNameOf({ fileName }: SentArgument, args: Arguments): string | undefined {
  const text = resolved(fileName, args);
  if (text === undefined || !hasControlCharacter(text)) return text;
  throw refusedArgument({ name: sourceOf(fileName) }, 'a file name must not have control characters');
}

/** The media type of an argument likewise. @throws ToolFailure invalid_arguments */
export function mediaTypeOfArgument({ mediaType }: SentArgument, args: Arguments): string | undefined {
  const text = resolved(mediaType, args);
  if (text === undefined || mediaTypePattern.test(text)) return text;
  throw refusedArgument({ name: sourceOf(mediaType) }, 'is not a media type; allowed: for example image/png');
}

function resolved(text: TextOrArgument | undefined, args: Arguments): string | undefined {
  if (typeof text !== 'object') return text;
  const given = valueText(text.argument, own(args, text.argument));
  return given === '' ? undefined : given;
}

function sourceOf(text: TextOrArgument | undefined): string {
  return typeof text === 'object' ? text.argument : '';
}
