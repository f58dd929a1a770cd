import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig({ ignores: ["dist", "node_modules"] }, ...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] } } },
  rules: {
    // Numbers belong in messages; the rule's other cases stay on.
    "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
  },
});
