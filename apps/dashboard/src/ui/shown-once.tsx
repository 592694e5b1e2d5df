import { Alert } from '@mantine/core';
import { IconEyeOff } from '@tabler/icons-react';
import { CodeBlock } from './text/code-block.tsx';

export function ShownOnce({ code, label }: { code: string; label: string }) {
  return (
    <>
      <Alert color="yellow" icon={<IconEyeOff size={18} />} title="Copy it now">
        It cannot be shown again.
      </Alert>
      <CodeBlock code={code} label={label} />
    </>
  );
}
