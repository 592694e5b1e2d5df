import type { TextOrArgument, WireStyle } from '../config/input-schema.ts';
import type { OwnedNames } from '../http/parameter-names.ts';

/** Arguments of a call: validated, with defaults filled in. Numbers may be `JSON.rawJSON` objects. */
export type Arguments = { [name: string]: unknown };

/** An argument outside the URL, and how it is sent. */
export type SentArgument = {
  name: string;
  /** Its name in the query, in the header list or in the body. */
  wireName: string;
  location: 'query' | 'header' | 'cookie' | 'body';
  /** Undefined: arrays as the tool's `array_format` says, objects as JSON text. */
  style: WireStyle | undefined;
  /** Names that the caller must not make of the properties of an object. */
  reserved: OwnedNames | undefined;
  /** True if the reserved characters of a query value are not encoded. */
  keepsReserved: boolean;
  isBase64: boolean;
  fileName: TextOrArgument | undefined;
  mediaType: TextOrArgument | undefined;
};
