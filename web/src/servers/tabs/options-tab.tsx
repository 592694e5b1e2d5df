import { Stack } from '@mantine/core';
import { useCanEdit } from '../../frame/session.ts';
import { CaptureSection } from './capture-section.tsx';
import { DeleteSection } from './delete-section.tsx';
import { LimitsSection } from './limits-section.tsx';

export function OptionsTab() {
  const canEdit = useCanEdit();
  return (
    <Stack gap="md">
      <LimitsSection />
      <CaptureSection />
      {canEdit && <DeleteSection />}
    </Stack>
  );
}
