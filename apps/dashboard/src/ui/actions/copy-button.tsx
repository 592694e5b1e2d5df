import { ActionIcon, Tooltip } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { IconCheck, IconCopy } from '@tabler/icons-react';

export function CopyButton({ value, label }: { value: string; label: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  const successTooltip = clipboard.copied ? 'Copied' : label;
  const tooltip = clipboard.error ? 'Select the text and copy it manually' : successTooltip;
  return (
    <Tooltip label={tooltip} {...((clipboard.copied || clipboard.error) && { opened: true })}>
      <ActionIcon aria-label={label} color={clipboard.copied ? 'green' : 'gray'} onClick={() => clipboard.copy(value)}>
        {clipboard.copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
      </ActionIcon>
    </Tooltip>
  );
}
