export type Colour = 'green' | 'red' | 'yellow' | 'dim';

const codes: Record<Colour, number> = { green: 32, red: 31, yellow: 33, dim: 2 };

/** Colours texts at a terminal that shows colours, unless NO_COLOR is set (https://no-color.org). */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): (text: string, colour: Colour) => string {
  const shows = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text, colour) => (shows ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text);
}
