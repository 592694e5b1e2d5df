import { Box } from '@mantine/core';
import { CopyButton } from '../actions/copy-button.tsx';
import { toVisible } from './visible.ts';

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <Box pos="relative" className="th-code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable text must be reachable by keyboard */}
      <section className="th-code" tabIndex={0} aria-label={label} style={{ paddingRight: '3rem' }}>
        {toVisible(code)}
      </section>
      <CopyButton value={code} label={`Copy ${label}`} />
    </Box>
  );
}
