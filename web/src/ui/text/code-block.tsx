import { Box } from '@mantine/core';
import { CopyButton } from '../actions/copy-button.tsx';
import { visible } from './visible.ts';

/** Text to copy, as it is. */
export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <Box pos="relative">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by keyboard */}
      <section className="th-code" tabIndex={0} aria-label={label} style={{ paddingRight: '3rem' }}>
        {visible(code)}
      </section>
      <Box pos="absolute" top={6} right={6}>
        <CopyButton value={code} label={`Copy ${label}`} />
      </Box>
    </Box>
  );
}
