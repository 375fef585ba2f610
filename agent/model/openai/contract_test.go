package openai_test

import (
	"testing"

	"skein/agent/model"
	"skein/agent/model/modeltest"
	"skein/agent/model/openai"
)

func connect(t *testing.T, url string, stream bool) model.Client {
	t.Helper()
	c, err := openai.New(openai.Options{BaseURL: url, Model: "script", Name: "script", Stream: stream, Scripted: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Suite{Dialect: "openai", Connect: connect})
}
