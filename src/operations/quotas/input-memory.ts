import { LongInput } from '../../domain/json/long-input.ts';
import { LongText } from '../../domain/json/long-text.ts';

/** Bytes of a value, and of a name with its place in an object, beside their characters. */
const bytesOfValue = 16;
const bytesOfName = 80;

/** What an operation makes of a configuration takes so many times its bytes: texts, values, and the answer. */
const timesOfConfiguration = 8;

/** About how many bytes of memory an input takes while its operation waits, and while it runs. */
export function memoryOfInput(raw: unknown): { waiting: number; running: number } {
  if (raw instanceof LongInput) return { waiting: raw.bytes, running: memoryOfConfiguration(raw.bytes) };
  let waiting = 0;
  let more = 0;
  const count = (value: unknown): void => {
    waiting += bytesOfValue;
    if (typeof value === 'string') waiting += value.length;
    else if (value instanceof LongText) waiting += value.bytes.byteLength;
    else if (value instanceof LongInput) {
      waiting += value.bytes;
      more += memoryOfConfiguration(value.bytes);
    } else if (Array.isArray(value)) value.forEach(count);
    else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        waiting += bytesOfName + name.length;
        count(inner);
      }
    }
  };
  count(raw);
  return { waiting, running: waiting + more };
}

export function memoryOfConfiguration(bytes: number): number {
  return bytes * timesOfConfiguration;
}
